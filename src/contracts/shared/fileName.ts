/** Names of files without one, for contracts whose files have names, and the types of pictures by their data. */
import type { FilePart, ImagePart } from "../../domain/Conversation.ts"

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

/** How pictures begin, in Base64. */
const beginnings = [
  ["iVBORw0KGgo", "image/png"],
  ["/9j/", "image/jpeg"],
  ["R0lGOD", "image/gif"],
  ["UklGR", "image/webp"]
] as const

/** The media type of a picture's data: what its bytes are, which clients often call by another name, or else what its caller says. */
export const pictureType = ({ data = "", mediaType = "image/png" }: Pick<ImagePart, "data" | "mediaType">): string => {
  const found = beginnings.find(([beginning]) => data.startsWith(beginning))
  return found?.[1] ?? mediaType.toLowerCase().replace(/^image\/jpg$/, "image/jpeg")
}
