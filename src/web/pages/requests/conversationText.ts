/**
 * A recorded conversation with its reply, as turns, text or JSON.
 */
import { parsed } from "../../state/json.ts"
import type { RequestRecord } from "../../state/requests.ts"

type Recorded = NonNullable<RequestRecord["conversation"]>[number]

/** A turn of the conversation; the reply is the last one. */
export interface ShownTurn extends Recorded {
  readonly reasoning: string
  readonly isReply: boolean
  readonly finish: string | null
}

/** The turns in order. A reply that is no conversation, or has not begun, is left out. */
export const turnsOf = (
  { conversation, reply }: Pick<RequestRecord, "conversation" | "reply">
): ReadonlyArray<ShownTurn> => {
  const turns = (conversation ?? []).map((turn): ShownTurn => ({
    ...turn,
    reasoning: "",
    isReply: false,
    finish: null
  }))
  if (reply === null || reply.text === null || reply.status >= 400) return turns
  const { calls, finish, reasoning, text } = reply
  return [
    ...turns,
    { role: "assistant", text, reasoning: reasoning ?? "", calls, call_id: null, isReply: true, finish }
  ]
}

/** The turns as plain text. */
export const asText = (turns: ReadonlyArray<ShownTurn>): string =>
  turns.map(({ calls, reasoning, role, text }) =>
    [
      `${role}:`,
      ...reasoning === "" ? [] : [`(${reasoning})`],
      ...text === "" ? [] : [text],
      ...calls.map((call) => `${call.name}(${call.arguments})`)
    ].join("\n")
  ).join("\n\n")

/** The turns as JSON; arguments that are JSON are not quoted. */
export const asJson = (turns: ReadonlyArray<ShownTurn>): string =>
  JSON.stringify(
    turns.map(({ call_id, calls, finish, isReply, reasoning, role, text }) => ({
      role,
      ...call_id === null ? {} : { call_id },
      ...reasoning === "" ? {} : { reasoning },
      text,
      ...calls.length === 0
        ? {}
        : { calls: calls.map((call) => ({ ...call, arguments: parsed(call.arguments) ?? call.arguments })) },
      ...isReply ? { finish } : {}
    })),
    null,
    2
  )
