/**
 * A Responses server for tests: the scripted server, with the events and bodies of this contract.
 */
import { type Answer, type OpenAiServer, startOpenAiServer } from "../../src/testing/openAiSocket.ts"
import { messageItem, responseOf, streamed } from "../../src/testing/responsesSocket.ts"

export { type Answer, json, type SeenRequest } from "../../src/testing/openAiSocket.ts"
export * from "../../src/testing/responsesSocket.ts"

/** A text as a reply. */
export const said = (text: string): Answer => streamed(responseOf([messageItem(text)]))

/** Starts a server on a free port. */
export const startResponsesServer = async (): Promise<OpenAiServer> => {
  const server = await startOpenAiServer()
  server.answer(() => said("Hello"))
  return server
}
