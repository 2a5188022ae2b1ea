/** Files in a message, or in one that is being written. */
import type { ReactElement } from "react";
import { bytes } from "../attachments.ts";
import { nameOf, readAttachedText, type Attached } from "../draft.ts";
import { Icon } from "./icon.tsx";

interface Props {
  readonly files: readonly Attached[];
  /** Where they can still be left out. */
  onRemove?(file: Attached): void;
}

export function Attachments({ files, onRemove }: Props): ReactElement | null {
  if (files.length === 0) return null;
  return (
    <ul className="files" aria-label="Attachments">
      {files.map((file, place) => (
        // Two may be the same file: their place is what tells them apart.
        // eslint-disable-next-line react/no-array-index-key
        <li key={`${place} ${nameOf(file)}`} className="file">
          <Shown file={file} />
          {onRemove && (
            <button
              type="button"
              className="quiet remove"
              aria-label={`Remove ${nameOf(file)}`}
              onClick={() => onRemove(file)}
            >
              <Icon name="cross" />
            </button>
          )}
        </li>
      ))}
    </ul>
  );
}

function Shown({ file }: { readonly file: Attached }): ReactElement {
  const name = nameOf(file);
  if (file.type === "text") return <TextFile name={name} text={readAttachedText(file.text)?.text ?? file.text} />;
  const url = imageUrl(file);
  if (url !== undefined) return <img src={url} alt={name} />;
  return (
    <p className="file-name">
      <Icon name="file" />
      <span>{name}</span>
    </p>
  );
}

const PREVIEW = 4000;

function TextFile({ name, text }: { readonly name: string; readonly text: string }): ReactElement {
  const size = bytes(new Blob([text]).size);
  return (
    <details className="text-file">
      <summary>
        <Icon name="file" />
        <span className="name">{name}</span>
        <small>{size}</small>
      </summary>
      <pre tabIndex={0}>{text.length > PREVIEW ? `${text.slice(0, PREVIEW)}\n…` : text}</pre>
    </details>
  );
}

/** Only of kinds that cannot run anything, and only of what is in the log itself. */
export function imageUrl(file: Attached & { readonly type: "file" }): string | undefined {
  const isImage = "base64" in file.data && /^image\/(png|jpeg|gif|webp)$/.test(file.mediaType);
  return isImage && "base64" in file.data ? `data:${file.mediaType};base64,${file.data.base64}` : undefined;
}
