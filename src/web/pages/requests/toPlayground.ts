/**
 * A recorded request as a conversation of the playground.
 */
import { styles, type Turn } from "../../playground/conversation.ts"
import type { Form } from "../../playground/state.ts"
import { localTools } from "../../playground/tools.ts"
import type { RequestRecord } from "../../state/requests.ts"

/** The form and the turns. The last user message is put into the form, to be sent again. */
export const asConversation = (
  record: RequestRecord
): { readonly form: Partial<Form>; readonly turns: ReadonlyArray<Turn> } => {
  const recorded = record.conversation ?? []
  const calls = new Map(recorded.flatMap((turn) => turn.calls.map((call) => [call.id, call] as const)))
  const turns = recorded.flatMap((turn): ReadonlyArray<Turn> => {
    switch (turn.role) {
      case "user":
        return [{ role: "user", text: turn.text }]
      case "assistant":
        return [{ role: "assistant", text: turn.text, reasoning: "", calls: turn.calls }]
      case "tool": {
        const call = calls.get(turn.call_id ?? "") ?? { id: turn.call_id ?? "", name: "", arguments: "{}" }
        return [{ role: "tool", call, result: turn.text }]
      }
      default:
        return []
    }
  })
  const last = turns.at(-1)
  const local = new Set(localTools.map((tool) => tool.name))
  return {
    form: {
      style: styles.find((known) => known === record.style) ?? "chat",
      model: record.model ?? "",
      stream: record.stream,
      system: recorded.filter((turn) => turn.role === "system").map((turn) => turn.text).join("\n\n"),
      message: last?.role === "user" ? last.text : "",
      tools: [...calls.values()].some((call) => local.has(call.name))
    },
    turns: last?.role === "user" ? turns.slice(0, -1) : turns
  }
}
