/**
 * Sends a request of the playground like any caller: with a business key, and without the operator's session.
 */
import { at } from "../state/client.ts"
import { dataOf } from "../state/frames.ts"
import { parsed } from "../state/json.ts"
import { collect, errorOf } from "./answers.ts"
import type { Answer, Prompt } from "./conversation.ts"
import { wireOf } from "./wire.ts"

/** An event as it came over the wire, or a whole body. `at` is in milliseconds since the request. */
export interface Frame {
  readonly at: number
  readonly data: string
}

/** The state of a request. */
export interface Sent {
  readonly status: number | undefined
  readonly requestId: string | undefined
  readonly answer: Answer
  readonly frames: ReadonlyArray<Frame>
}

const blankLine = /\r\n\r\n|\n\n|\r\r/g

/**
 * Sends a request and calls `onChange` as the reply arrives; the list of frames stays the same object and grows. Resolves to
 * the final state. Rejects when the gateway is not reached or the signal aborts.
 */
export const send = async (
  prompt: Prompt,
  key: string,
  signal: AbortSignal,
  onChange: (sent: Sent) => void,
  /** The token of a rehearsal. */
  rehearsal?: string
): Promise<Sent> => {
  const { body, path } = wireOf(prompt)
  const started = performance.now()
  const frames: Array<Frame> = []
  const reply = collect(prompt.style)
  const response = await fetch(at(path), {
    method: "POST",
    signal,
    credentials: "omit",
    headers: {
      "content-type": "application/json",
      authorization: `Bearer ${key}`,
      ...rehearsal === undefined ? {} : { "x-gateway-rehearsal": rehearsal }
    },
    body: JSON.stringify(body)
  })
  const sent = (): Sent => ({
    status: response.status,
    requestId: response.headers.get("x-request-id") ?? undefined,
    answer: reply.answer(),
    frames
  })
  const add = (data: string) => frames.push({ at: performance.now() - started, data })
  if (response.body === null || !(response.headers.get("content-type") ?? "").startsWith("text/event-stream")) {
    const text = await response.text()
    add(text)
    const value = parsed(text)
    if (response.ok) {
      reply.take(text)
      reply.end()
    }
    const end = sent()
    return response.ok
      ? end
      : { ...end, answer: { ...end.answer, error: errorOf(value) ?? `HTTP ${response.status}` } }
  }
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
  let rest = ""
  const takeFrame = (frame: string) => {
    add(frame)
    const { data, event } = dataOf(frame)
    if (data !== "") reply.take(data, { event: event || undefined })
  }
  for (;;) {
    const { done, value } = await reader.read()
    if (done) break
    rest += value
    let from = 0
    for (const found of rest.matchAll(blankLine)) {
      takeFrame(rest.slice(from, found.index))
      from = found.index + found[0].length
    }
    rest = rest.slice(from)
    onChange(sent())
  }
  if (rest.trim() !== "") takeFrame(rest)
  reply.end()
  return sent()
}
