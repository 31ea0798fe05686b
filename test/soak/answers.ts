/** A plan of the soak, and the answers of a gateway to it. */
import type { Received } from "../../bench/soak/client.ts"
import type { Plan } from "../../bench/soak/plan.ts"

export const plan: Plan = {
  number: 1,
  style: "chat",
  kind: "text",
  stream: true,
  model: "upstream-chat",
  prompt: "!say one two",
  expected: { reasoning: "", text: "one two", calls: [] },
  fault: undefined,
  credential: "key",
  victim: undefined,
  behaviour: { _tag: "Reads" },
  variant: 0
}

export const frame = (value: unknown): string =>
  `data: ${typeof value === "string" ? value : JSON.stringify(value)}\n\n`
export const chunk = (delta: object, finish_reason: string | null = null): string =>
  frame({ id: "a", choices: [{ index: 0, delta, finish_reason }] })
export const failure = (code: string) => ({ error: { message: "m", type: "t", code, param: null } })

export const streamed = (body: string, more: Partial<Received> = {}): Received => ({
  how: "whole",
  status: 200,
  contentType: "text/event-stream; charset=utf-8",
  requestId: "r",
  body,
  node: 0,
  port: 0,
  began: 0,
  answered: 0,
  ended: 0,
  ...more
})

export const plain = (status: number, value: unknown): Received =>
  streamed(JSON.stringify(value), { status, contentType: "application/json" })
