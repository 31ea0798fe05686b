/** One question in each of the styles, and what a caller reads of the thinking, the text and the end: raw frames, no SDK. */
import { businessKey } from "../support/gateway.ts"
import { parseFrames } from "../support/sse.ts"
import type { StyleName } from "../support/styleClients.ts"

/** What a caller was answered. */
export interface Asked {
  readonly status: number
  readonly ignored: string | null
  readonly thinking: string
  readonly text: string
  readonly finish: string | undefined
  /** The message of an error, of the reply itself or within its stream. */
  readonly error: string | undefined
}

type Fields = { readonly [name: string]: unknown }

const fields = (value: unknown): Fields => typeof value === "object" && value !== null ? value as Fields : {}
const list = (value: unknown): ReadonlyArray<Fields> => Array.isArray(value) ? value.map(fields) : []
const text = (value: unknown): string => typeof value === "string" ? value : ""

class Growing {
  thinking = ""
  text = ""
  finish: string | undefined
}

const readers: Record<StyleName, (value: Fields, into: Growing) => void> = {
  chat({ choices }, into) {
    for (const choice of list(choices)) {
      const said = fields(choice["delta"] ?? choice["message"])
      into.thinking += text(said["reasoning_content"])
      into.text += text(said["content"])
      into.finish = text(choice["finish_reason"]) || into.finish
    }
  },
  responses(value, into) {
    const response = value["object"] === "response" ? value : fields(value["response"])
    if (response["status"] === undefined || response["status"] === "in_progress") return
    for (const item of list(response["output"])) {
      if (item["type"] === "reasoning") {
        for (const part of list(item["summary"])) into.thinking += text(part["text"])
      }
      if (item["type"] === "message") { for (const part of list(item["content"])) into.text += text(part["text"]) }
    }
    into.finish = text(fields(response["incomplete_details"])["reason"]) || text(response["status"])
  },
  messages(value, into) {
    for (const block of list(value["content"])) {
      into.thinking += text(block["thinking"])
      into.text += text(block["text"])
    }
    const delta = fields(value["delta"])
    into.thinking += text(delta["thinking"])
    into.text += text(delta["text"])
    into.finish = text(delta["stop_reason"] ?? value["stop_reason"]) || into.finish
  },
  generate({ candidates }, into) {
    for (const candidate of list(candidates)) {
      for (const part of list(fields(candidate["content"])["parts"])) {
        if (part["thought"] === true) into.thinking += text(part["text"])
        else into.text += text(part["text"])
      }
      into.finish = text(candidate["finishReason"]) || into.finish
    }
  }
}

const paths: Record<StyleName, (model: string, stream: boolean) => string> = {
  chat: () => "/v1/chat/completions",
  responses: () => "/v1/responses",
  messages: () => "/v1/messages",
  generate: (model, stream) => `/v1beta/models/${model}:${stream ? "streamGenerateContent?alt=sse" : "generateContent"}`
}

const question = [{ role: "user", content: "Hi" }]

const bodies: Record<StyleName, (model: string, stream: boolean) => object> = {
  chat: (model, stream) => ({ model, stream, messages: question }),
  responses: (model, stream) => ({ model, stream, input: question }),
  messages: (model, stream) => ({ model, stream, max_tokens: 99_999, messages: question }),
  generate: () => ({ contents: [{ role: "user", parts: [{ text: "Hi" }] }] })
}

/** Asks with further fields of the body. */
export const ask = async (
  url: string,
  style: StyleName,
  stream: boolean,
  model: string,
  extra: object = {}
): Promise<Asked> => {
  const response = await fetch(`${url}${paths[style](model, stream)}`, {
    method: "POST",
    headers: { authorization: `Bearer ${businessKey}`, "content-type": "application/json" },
    body: JSON.stringify({ ...bodies[style](model, stream), ...extra })
  })
  const body = await response.text()
  const isStream = (response.headers.get("content-type") ?? "").includes("event-stream")
  const values = isStream
    ? parseFrames(body).flatMap(({ data }) => data === "[DONE]" ? [] : [fields(JSON.parse(data))])
    : [fields(JSON.parse(body))]
  const growing = new Growing()
  let error: string | undefined
  for (const value of values) {
    const failure = fields(value["error"] ?? fields(value["response"])["error"])
    if (failure["message"] !== undefined) error = text(failure["message"])
    readers[style](value, growing)
  }
  return {
    status: response.status,
    ignored: response.headers.get("x-gateway-ignored"),
    thinking: growing.thinking,
    text: growing.text,
    finish: growing.finish,
    error
  }
}

/** What asks for thinking with a budget, in the words of a style. */
export const thinkingWords = (style: StyleName): object =>
  ({
    chat: { reasoning_effort: "high" },
    responses: { reasoning: { effort: "high" } },
    messages: { thinking: { type: "enabled", budget_tokens: 20_000 } },
    generate: { generationConfig: { thinkingConfig: { thinkingBudget: 20_000, includeThoughts: true } } }
  })[style]
