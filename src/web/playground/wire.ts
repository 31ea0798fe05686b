/**
 * Requests of each style: the conversation of a prompt, as the style's contract writes it.
 */
import { replyPath } from "../../api.ts"
import {
  call,
  contractOfConversation,
  type Conversation,
  declaration,
  imageAt,
  plainConversation,
  result,
  runSync,
  Text
} from "../../contracts.ts"
import { parsed, record } from "../state/json.ts"
import type { Prompt, Turn } from "./conversation.ts"
import { localTools } from "./tools.ts"

interface WireRequest {
  /** Relative to the gateway's address. */
  readonly path: string
  readonly body: Readonly<Record<string, unknown>>
}

const turnOf = (turn: Turn): Conversation["turns"][number] => {
  switch (turn.role) {
    case "user":
      return { role: "user", parts: [Text(turn.text), ...turn.image === undefined ? [] : [imageAt(turn.image)]] }
    case "tool": {
      const { id, name } = turn.call
      return { role: "tool", parts: [result({ callId: id, name, content: [Text(turn.result)] })] }
    }
    case "assistant":
      return {
        role: "assistant",
        parts: [
          ...turn.text === "" ? [] : [Text(turn.text)],
          ...turn.calls.map((each) => call(each.id, each.name, each.arguments))
        ]
      }
  }
}

const conversationOf = (prompt: Prompt): Conversation => ({
  ...plainConversation,
  turns: [
    ...prompt.system === "" ? [] : [{ role: "system" as const, parts: [Text(prompt.system)] }],
    ...prompt.turns.map(turnOf)
  ],
  tools: [...prompt.tools ? localTools : [], ...prompt.ownTools].map(declaration),
  sampling: {
    ...plainConversation.sampling,
    temperature: prompt.temperature,
    maxCompletionTokens: prompt.maxTokens
  },
  output: prompt.json ? { _tag: "JsonObject" } : undefined
})

/** The request in its style. */
export const wireOf = (prompt: Prompt): WireRequest => ({
  path: replyPath(prompt.style, prompt.model, prompt.stream),
  body: record(parsed(runSync(
    contractOfConversation(prompt.style)!.writeRequest(prompt.model, conversationOf(prompt), undefined, !prompt.stream)
  )))
})
