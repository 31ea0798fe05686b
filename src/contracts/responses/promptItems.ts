/** Messages that declare tools as text, as the items of a request. */
import type { Json, JsonFields } from "../../domain/json.ts"
import { isFields } from "../../domain/replyExtras.ts"
import type { Input } from "./inputItems.ts"

const partOf = (part: JsonFields, isOutput: boolean): JsonFields => {
  const { file, image_url: image, input_audio, text, type } = part
  if (type === "image_url" && isFields(image)) {
    const { detail, url } = image
    return { type: "input_image", image_url: url ?? "", ...(detail === undefined ? {} : { detail }) }
  }
  if (type === "file" && isFields(file)) return { type: "input_file", ...file }
  if (type === "input_audio" && input_audio !== undefined) return { type: "input_audio", input_audio }
  const words = typeof text === "string" ? text : `[${typeof type === "string" ? type : "part"} omitted]`
  return isOutput ? { type: "output_text", text: words, annotations: [] } : { type: "input_text", text: words }
}

const contentOf = (content: Json | undefined, isOutput: boolean): Json => {
  const parts = Array.isArray(content) ? content : [{ type: "text", text: content ?? "" }]
  if (typeof content === "string" && !isOutput) return content
  return parts.flatMap((part: Json) => isFields(part) ? [partOf(part, isOutput)] : [])
}

/** The items of chat messages; a system message at the start becomes the instructions. */
export const itemsOfMessages = (messages: ReadonlyArray<JsonFields>): Input => {
  const [first, ...others] = messages
  const leads = first?.["role"] === "system" && typeof first["content"] === "string" && others.length > 0
  return {
    instructions: leads ? first["content"] as string : undefined,
    items: (leads ? others : messages).map(({ content, role }) => ({
      type: "message",
      role: role === "system" ? "developer" : role ?? "user",
      content: contentOf(content, role === "assistant")
    }))
  }
}
