/** Cases that another layer owns, wholly or in part: who does, and what ours does then. */

export interface Elsewhere {
  readonly owner: string;
  readonly ours: string;
}

const CLIENT = "the provider's client";

/** By the number of the case. What is said of ours is tested wherever it can be. */
export const elsewhere: Readonly<Record<string, Elsewhere>> = {
  B001: { owner: CLIENT, ours: "one client joins by id, the other refuses: an error with a code, no call" },
  B005: {
    owner: "a client's path without streams, which is never used",
    ours: "a call in pieces is a call that came whole",
  },
  B008: {
    owner: CLIENT,
    ours: "one client waits for the name, the other refuses; chunks of a model may come in any order",
  },
  B010: {
    owner: CLIENT,
    ours: "a name of null is an error with a code; an empty one is answered and replayed as `unknown_tool`",
  },
  B014: {
    owner: CLIENT,
    ours: "an object is taken where the client hands it on; where it refuses, an error and no call",
  },
  B022: {
    owner: "the client, for its own buffer; a cap on the size is the host's",
    ours: "the text is put together once",
  },
  B025: { owner: "a client, or a hook, that parses calls out of text", ours: "text is text, and never runs" },
  B035: { owner: CLIENT, ours: "it waits for the end of the body, as the client does; a cancel lets go of it at once" },
  B043: { owner: CLIENT, ours: "an error that names the content type; the body is not kept by the client" },
  B046: { owner: "the client's parser of events", ours: "the same text, however the bytes were cut" },
  B047: { owner: "the client's decoder", ours: "the same text, however the bytes were cut" },
  B050: { owner: "the client's parser of events", ours: "no chunk comes of it" },
  B052: { owner: "the client's parser of events", ours: "what came is kept, and the answer counts as cut off" },
  B053: { owner: "the client's decoder", ours: "the same text, however the bytes were cut" },
  B055: { owner: "the client's parser of events", ours: "an error with a code; half an object is not used" },
  B056: {
    owner: CLIENT,
    ours: "where the client tells the error it has code and status; where it drops it, no empty success",
  },
  B065: { owner: "a client's or a policy's parser of tags", ours: "tags in text are text, to the letter" },
  B067: {
    owner: "the client, for a stand-in of a signature",
    ours: "foreign metadata is not sent; the log is never changed",
  },
  B074: { owner: CLIENT, ours: "one item is one block" },
  B082: {
    owner: CLIENT,
    ours: "an answer of calls alone has no text of ours; what stands in its place the client writes",
  },
  B083: { owner: "the client, for joining neighbours of one role", ours: "one system text, in front" },
  B086: { owner: "a transport", ours: "blocks that overlap are told apart by index" },
  B139: { owner: "a storage that keeps lines", ours: "an import that is refused says the line, and stores nothing" },
  B140: { owner: "a storage that can lose a part", ours: "a log with a hole is refused, not shortened" },
  B145: { owner: "a storage with rows of a limited size", ours: "each event is written once" },
  B146: {
    owner: "a storage, for its memory and its pages",
    ours: "a list reads no events; opening reads the whole log",
  },
  B155: { owner: "a transport, for holding back what comes early", ours: "a result without its call is in no history" },
  B170: {
    owner: "the client, for places of its own such as `x_groq`",
    ours: "absent counts are absent, and counts are disjoint",
  },
};
