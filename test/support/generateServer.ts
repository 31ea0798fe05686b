/** Replies of a content-generation server, for the scripted server of `openaiServer.ts`. */
import { type Answer, frames, json, type OpenAiServer, startOpenAiServer } from "./openaiServer.ts"

export { type Answer, frames, json, type SeenRequest } from "./openaiServer.ts"

export type GenerateServer = OpenAiServer

export const usageMetadata = {
  promptTokenCount: 11,
  candidatesTokenCount: 7,
  totalTokenCount: 18,
  thoughtsTokenCount: 0,
  cachedContentTokenCount: 0
}

/** A chunk of a reply. */
export const chunk = (parts: ReadonlyArray<object>, candidate: object = {}, rest: object = {}) => ({
  candidates: [{ content: { role: "model", parts }, index: 0, ...candidate }],
  usageMetadata,
  modelVersion: "gemini-server",
  responseId: "resp-1",
  ...rest
})

/** A streamed reply of these chunks. */
export const streamed = (...chunks: ReadonlyArray<object>): Answer => ({ pieces: [frames(...chunks)] })

/** A streamed reply of one text. */
export const said = (text: string): Answer =>
  streamed(chunk([{ text: text.slice(0, 3) }]), chunk([{ text: text.slice(3) }], { finishReason: "STOP" }))

/** An error in the vendor's form. */
export const refused = (code: number, status: string, message: string, details: ReadonlyArray<object> = []): Answer =>
  json(code, { error: { code, message, status, ...(details.length === 0 ? {} : { details }) } })

/** Starts a server on a free port; its address has no version prefix. */
export const startGenerateServer = async (): Promise<GenerateServer> => {
  const server = await startOpenAiServer()
  server.answer(() => said("Hello"))
  return Object.defineProperty(server, "baseUrl", { value: server.baseUrl.replace(/\/v1$/, "") })
}
