/**
 * From a prompt to a reply: the pure heart of the reference upstream.
 */
import { estimateTokens } from "../domain/estimateTokens.ts"
import { answerByDefault } from "./defaultAnswer.ts"
import { type PromptTurn, readPrompt } from "./prompt.ts"
import type { Reply } from "./Reply.ts"
import { ReplyBuilder, type ReplyFlags, type ReplySettings } from "./ReplyBuilder.ts"
import { runScript } from "./script.ts"

export interface ReplyRequest extends ReplyFlags {
  readonly prompt: string
  /** Turns of the same session before this one. */
  readonly earlier: ReadonlyArray<PromptTurn>
}

/** The reply to a prompt. `script` stands in for the last user turn, where a test brings its own. */
export const replyTo = (request: ReplyRequest, settings: ReplySettings, script?: string): Reply => {
  const turns = [...request.earlier, ...readPrompt(request.prompt)]
  const lastUser = turns.findLastIndex((turn) => turn.role === "user")
  const text = script ?? turns[lastUser]?.text ?? ""
  const toolReplies = script === undefined ? turns.slice(lastUser + 1).filter((turn) => turn.role === "tool").length : 0
  const reply = new ReplyBuilder(request, settings)
  const ran = runScript(text, toolReplies, request.prompt, reply)
  if (!ran.spoke) answerByDefault(ran.question, turns, reply)
  return reply.build(estimateTokens(request.prompt))
}
