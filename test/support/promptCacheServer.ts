/**
 * The prompt cache of a scripted server: for each account it keeps the prompts that it got, and reads the longest beginning that a new one has
 * in common with one of them. A token is a byte of the prompt.
 */
import * as Generate from "./generateServer.ts"
import * as Messages from "./messagesServer.ts"
import { type Answer, chunk, frames, json, type SeenRequest } from "./openaiServer.ts"
import * as Responses from "./responsesServer.ts"

type Fields = { readonly [field: string]: unknown }

const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** Fields that are no part of the prompt: marks, and the name of thinking that this server does not speak. */
const unread = new Set(["cache_control", "reasoning"])

/** A value without what the server does not read, with a text in place of a list of one plain text. */
const plain = (value: unknown): unknown => {
  if (Array.isArray(value)) {
    const [only, ...others] = value.map(plain) as ReadonlyArray<unknown>
    const isText = isFields(only) && others.length === 0 && only["type"] === "text" && Object.keys(only).length === 2
    return isText ? only["text"] : [only, ...others].slice(0, value.length)
  }
  if (!isFields(value)) return value
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, field]) => unread.has(name) ? [] : [[name, plain(field)]])
  )
}

/** What a server caches of a request: its tools, its system prompt and its turns, in this order, each as one text. */
export const promptOf = ({ body }: Pick<SeenRequest, "body">): ReadonlyArray<string> => {
  const list = (name: string) => Array.isArray(body[name]) ? body[name] as ReadonlyArray<unknown> : []
  const { input, instructions, system, systemInstruction } = body
  const first = [instructions, system, systemInstruction].filter((value) => value !== undefined)
  const said = typeof input === "string" ? [input] : list("input")
  return [...list("tools"), ...first, ...said, ...list("messages"), ...list("contents")]
    .map((element) => JSON.stringify(plain(element)))
}

/** The tokens that a prompt has in common with another one. */
const common = (one: string, other: string): number => {
  let length = 0
  while (length < one.length && one[length] === other[length]) length++
  return length
}

/** The cache has no shorter beginning. */
const leastRead = 1_024

/** What a cache had of a prompt. */
export interface CacheRead {
  readonly prompt: number
  readonly read: number
}

export class PromptCaches {
  readonly #kept = new Map<string, Array<string>>()
  /** What the cache had of each prompt so far. */
  readonly reads: Array<CacheRead> = []

  /** Reads and keeps the prompt of a request. */
  read(request: SeenRequest): CacheRead {
    const prompt = promptOf(request).join("\n")
    const kept = this.#kept.get(request.key ?? "") ?? []
    this.#kept.set(request.key ?? "", kept)
    const longest = Math.max(0, ...kept.map((other) => common(prompt, other)))
    const read = { prompt: prompt.length, read: longest < leastRead ? 0 : longest }
    kept.push(prompt)
    this.reads.push(read)
    return read
  }

  /** Forgets all prompts. */
  forget(): void {
    this.#kept.clear()
  }

  /** The share of all prompts' tokens that the caches had. */
  get hitRate(): number {
    const sum = (of: (read: CacheRead) => number) => this.reads.reduce((sum, read) => sum + of(read), 0)
    return sum(({ read }) => read) / sum(({ prompt }) => prompt)
  }
}

/** What a scripted reply says. */
export interface Says {
  readonly text?: string
  readonly thinking?: string
  readonly call?: { readonly id: string; readonly name: string; readonly input: Fields }
}

/** The reply of a server to a request, by the contract of its path, with the usage of its cache. */
export const cachedReply = (
  { body, path }: Pick<SeenRequest, "body" | "path">,
  { prompt, read }: CacheRead,
  { call, text, thinking }: Says
): Answer => {
  if (path.endsWith("/messages")) {
    const content = [
      ...(thinking === undefined ? [] : [{ type: "thinking", thinking, signature: `signed ${thinking}` }]),
      ...(text === undefined ? [] : [Messages.textBlock(text)]),
      ...(call === undefined ? [] : [{ type: "tool_use", ...call }])
    ]
    const usage = {
      ...Messages.usage,
      input_tokens: 0,
      cache_read_input_tokens: read,
      cache_creation_input_tokens: prompt - read,
      cache_creation: { ephemeral_5m_input_tokens: prompt - read, ephemeral_1h_input_tokens: 0 }
    }
    const options = { usage, ...(call === undefined ? {} : { stop: { stop_reason: "tool_use" } }) }
    return (body["stream"] === true ? Messages.streamedMessage : Messages.wholeMessage)(content, options)
  }
  if (path.endsWith("/responses")) {
    const output = [
      ...(thinking === undefined ? [] : [{
        type: "reasoning",
        id: `rs_${thinking}`,
        summary: [{ type: "summary_text", text: thinking }],
        encrypted_content: `sealed ${thinking}`
      }]),
      ...(text === undefined ? [] : [Responses.messageItem(text)]),
      ...(call === undefined ? [] : [{
        type: "function_call",
        id: `fc_${call.id}`,
        call_id: call.id,
        name: call.name,
        arguments: JSON.stringify(call.input),
        status: "completed"
      }])
    ]
    const usage = {
      input_tokens: prompt,
      input_tokens_details: { cached_tokens: read },
      output_tokens: 4,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: prompt + 4
    }
    const response = Responses.responseOf(output, { usage })
    return body["stream"] === true ? Responses.streamed(response) : Responses.whole(response)
  }
  if (path.includes("enerateContent")) {
    const parts = [
      ...(thinking === undefined ? [] : [{ text: thinking, thought: true }]),
      ...(text === undefined ? [] : [{ text }]),
      ...(call === undefined ? [] : [{
        functionCall: { id: call.id, name: call.name, args: call.input },
        ...(thinking === undefined ? {} : { thoughtSignature: Buffer.from(thinking).toString("base64") })
      }])
    ]
    const usageMetadata = {
      promptTokenCount: prompt,
      ...(read === 0 ? {} : { cachedContentTokenCount: read }),
      candidatesTokenCount: 4,
      totalTokenCount: prompt + 4
    }
    const reply = Generate.chunk(parts, { finishReason: "STOP" }, { usageMetadata })
    return path.includes("streamGenerateContent") ? Generate.streamed(reply) : json(200, reply)
  }
  const usage = {
    prompt_tokens: prompt,
    prompt_tokens_details: { cached_tokens: read },
    completion_tokens: 4,
    total_tokens: prompt + 4
  }
  const calls = call === undefined ? {} : {
    tool_calls: [{
      index: 0,
      id: call.id,
      type: "function",
      function: { name: call.name, arguments: JSON.stringify(call.input) }
    }]
  }
  const message = {
    role: "assistant",
    content: text ?? null,
    ...(thinking === undefined ? {} : { reasoning_content: thinking }),
    ...calls
  }
  const finish = call === undefined ? "stop" : "tool_calls"
  return body["stream"] === true
    ? { pieces: [frames(chunk(message), chunk({}, finish), { ...chunk({}), choices: [], usage }, "[DONE]")] }
    : json(200, {
      ...chunk({}),
      object: "chat.completion",
      choices: [{ index: 0, message, finish_reason: finish }],
      usage
    })
}
