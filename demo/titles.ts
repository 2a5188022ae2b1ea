/** A chat is called by the first thing that was said in it, until somebody renames it. */
import type { Plugin } from "turnloop";
import { draftOf, nameOf } from "./draft.ts";

const LENGTH = 60;

export const titles: Plugin = ({ hooks }) =>
  hooks.on("session/event", ({ session, event }) => {
    if (event.type !== "user/message") return;
    const isNamed = session.events.some(({ type }) => type === "session/titled");
    const { text, files } = draftOf(event.data.content);
    const title = text.replaceAll(/\s+/g, " ").trim() || files.map(nameOf).join(", ");
    if (isNamed || title === "") return;
    session.append("session/titled", {
      title: title.length > LENGTH ? `${title.slice(0, LENGTH).toWellFormed()}…` : title,
    });
  });
