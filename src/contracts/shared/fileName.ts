/** Names of files without one, for contracts whose files have names. */
import type { FilePart } from "../../domain/Conversation.ts"

/** Endings of media types whose subtype is another word. */
const endings: ReadonlyMap<string, string> = new Map([
  ["plain", "txt"],
  ["markdown", "md"],
  ["javascript", "js"],
  ["vnd.openxmlformats-officedocument.wordprocessingml.document", "docx"],
  ["vnd.openxmlformats-officedocument.spreadsheetml.sheet", "xlsx"],
  ["vnd.openxmlformats-officedocument.presentationml.presentation", "pptx"]
])

/** The name of a file's data, by its type if it has none; `undefined` for a file without data. */
export const fileName = ({ data, mediaType = "", name }: FilePart): string | undefined => {
  if (name !== undefined || data === undefined) return name
  const subtype = /^[\w.-]+\/(?:x-)?([\w.-]+)/.exec(mediaType.toLowerCase())?.[1]
  return subtype === undefined || subtype === "octet-stream" ? "file" : `file.${endings.get(subtype) ?? subtype}`
}
