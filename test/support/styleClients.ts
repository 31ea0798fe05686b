/**
 * The vendors' SDKs of the four styles behind one interface: each sends the same request, whole and streamed, and its result is converted
 * to common terms.
 */
import Anthropic, { APIError as AnthropicError } from "@anthropic-ai/sdk"
import type { GenerateContentResponse, Part } from "@google/genai"
import { ApiError as GenerateError, FunctionCallingConfigMode, GoogleGenAI } from "@google/genai"
import OpenAI from "openai"
import type { JsonSchema } from "../../src/domain/Conversation.ts"
import type { Json } from "../../src/domain/json.ts"
import { businessKey } from "./gateway.ts"

export const styleNames = ["chat", "responses", "messages", "generate"] as const
export type StyleName = typeof styleNames[number]

export interface AskTool {
  readonly name: string
  readonly description: string
  readonly parameters: JsonSchema
}

/** A request that every style supports. */
export interface Ask {
  /** The user message: a script for the scripted upstream. */
  readonly content: string
  /** A model; every style shows its reasoning. */
  readonly reasoner?: boolean
  readonly tools?: ReadonlyArray<AskTool>
  readonly toolChoice?: "none" | "required" | { readonly name: string }
  readonly stop?: ReadonlyArray<string>
  readonly schema?: JsonSchema
  readonly signal?: AbortSignal
  /** Called at the first text of a streamed reply. */
  readonly onText?: () => void
}

/** A part of a reply, with parsed arguments. */
export type Block =
  | { readonly _tag: "Reasoning"; readonly text: string }
  | { readonly _tag: "Text"; readonly text: string }
  | { readonly _tag: "Call"; readonly name: string; readonly arguments: Json }

/** A truncated call: the part of its arguments that was sent. */
export interface CutOff {
  readonly name: string
  readonly arguments: string
}

export interface Counts {
  readonly prompt: number
  readonly completion: number
  readonly reasoning: number
  readonly cached: number
}

/** A reply from the SDK. */
export interface Got {
  readonly _tag: "Got"
  /** In the style's order; adjacent texts are joined. */
  readonly blocks: ReadonlyArray<Block>
  readonly cutOff: ReadonlyArray<CutOff>
  readonly usage: Counts
  /** In the style's terms. */
  readonly finish: string
  /** The SDK's object without fields that differ between requests. Equal for streamed and whole replies. */
  readonly object: unknown
}

/** A failed request: the error that the SDK throws, or the failed response of a Responses stream. */
export interface Failed {
  readonly _tag: "Failed"
  /** Name of the SDK's error class. */
  readonly type: string
  /** The HTTP status; `undefined` for a failure in a stream of a style without a status field. */
  readonly status: number | undefined
  /** The error's code; its `status` in the content-generation style. */
  readonly code: string
  readonly message: string
  /** The text received before the failure. */
  readonly shown: string
}

export interface StyleClient {
  readonly whole: (ask: Ask) => Promise<Got | Failed>
  readonly streamed: (ask: Ask) => Promise<Got | Failed>
}

type Fetch = typeof globalThis.fetch

const jsonOf = (text: string): Json | undefined => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const eachTimeAnother = new Set(["id", "call_id", "created", "created_at", "completed_at"])
const addedByAccumulators = new Set(["parsed", "parsed_arguments", "parsed_output", "output_parsed"])

/** An SDK's object without fields that differ between requests, and without fields that the SDK's accumulator adds. */
const comparable = (object: object): unknown =>
  JSON.parse(
    JSON.stringify(
      object,
      (key, value: unknown) => eachTimeAnother.has(key) ? "" : addedByAccumulators.has(key) ? undefined : value
    )
  )

/** A call from its arguments' text: complete, or truncated if the text is not JSON. */
class Blocks {
  readonly blocks: Array<Block> = []
  readonly cutOff: Array<CutOff> = []

  get calls(): number {
    return this.blocks.filter(({ _tag }) => _tag === "Call").length
  }
  text(_tag: "Reasoning" | "Text", text: string): this {
    const last = this.blocks.at(-1)
    if (last?._tag === _tag) this.blocks[this.blocks.length - 1] = { _tag, text: last.text + text }
    else if (text !== "") this.blocks.push({ _tag, text })
    return this
  }
  call(name: string, args: string): this {
    const parsed = jsonOf(args)
    if (parsed === undefined) this.cutOff.push({ name, arguments: args })
    else this.blocks.push({ _tag: "Call", name, arguments: parsed })
    return this
  }
}

const got = ({ blocks, cutOff }: Blocks, rest: Pick<Got, "usage" | "finish" | "object">): Got => ({
  _tag: "Got",
  blocks,
  cutOff,
  ...rest
})

/** Converts an SDK error to a failure. Rethrows every other error, because it is a bug of the test. */
const failed = (error: unknown, shown: string): Failed => {
  const common = (type: string, status: number | undefined, code: string, message: string): Failed => ({
    _tag: "Failed",
    type,
    status,
    code,
    message,
    shown
  })
  if (error instanceof OpenAI.APIUserAbortError || error instanceof Anthropic.APIUserAbortError) {
    return common("aborted", undefined, "aborted", error.message)
  }
  if (error instanceof Error && error.name === "AbortError") {
    return common("aborted", undefined, "aborted", error.message)
  }
  if (error instanceof OpenAI.APIError && typeof error.code === "string") {
    const { error: body } = error
    const message = typeof body === "object" && body !== null && "message" in body
      ? String(body.message)
      : error.message
    return common(error.constructor.name, error.status, error.code, message)
  }
  if (error instanceof AnthropicError) {
    const body = error.error as { readonly error: { readonly code: string; readonly message: string } }
    return common(error.constructor.name, error.status, body.error.code, body.error.message)
  }
  if (error instanceof GenerateError) {
    // In a stream the SDK adds a prefix to the error's message.
    const body = jsonOf(error.message.slice(error.message.indexOf("{"))) as {
      readonly error: { readonly status: string; readonly message: string }
    }
    return common(error.constructor.name, error.status, body.error.status, body.error.message)
  }
  throw error
}

const attempt = (run: () => Promise<Got | Failed>, shown: () => string): Promise<Got | Failed> =>
  run().catch((error: unknown) => failed(error, shown()))

/** Collects the text of a stream, and reports the first piece. */
const watcher = ({ onText }: Ask) => {
  let shown = ""
  return {
    shown: () => shown,
    text: (text: string) => {
      const first = shown === ""
      shown += text
      if (first && text !== "") onText?.()
    }
  }
}

const withSignal = ({ signal }: Ask) => signal === undefined ? {} : { signal }

const nameOfModel = ({ reasoner = false }: Ask) => reasoner ? "upstream-reasoner" : "upstream-chat"

/** The SDK has no type for this field, which many servers have. */
const reasoningOf = (message: object): string =>
  "reasoning_content" in message && typeof message.reasoning_content === "string" ? message.reasoning_content : ""

const chat = (client: OpenAI): StyleClient => {
  const request = (ask: Ask) => ({
    model: nameOfModel(ask),
    messages: [{ role: "user" as const, content: ask.content }],
    ...(ask.tools === undefined ? {} : {
      tools: ask.tools.map((tool) => ({ type: "function" as const, function: { ...tool } }))
    }),
    ...(ask.toolChoice === undefined ? {} : {
      tool_choice: typeof ask.toolChoice === "string"
        ? ask.toolChoice
        : { type: "function" as const, function: { name: ask.toolChoice.name } }
    }),
    ...(ask.stop === undefined ? {} : { stop: [...ask.stop] }),
    ...(ask.schema === undefined ? {} : {
      response_format: { type: "json_schema" as const, json_schema: { name: "reply", schema: ask.schema } }
    })
  })
  const read = (completion: OpenAI.ChatCompletion, reasoning: string): Got => {
    const choice = completion.choices[0]!
    const blocks = new Blocks().text("Reasoning", reasoning).text("Text", choice.message.content ?? "")
    for (const call of choice.message.tool_calls ?? []) {
      if (call.type === "function") blocks.call(call.function.name, call.function.arguments)
    }
    const usage = completion.usage!
    return got(blocks, {
      usage: {
        prompt: usage.prompt_tokens,
        completion: usage.completion_tokens,
        reasoning: usage.completion_tokens_details?.reasoning_tokens ?? -1,
        cached: usage.prompt_tokens_details?.cached_tokens ?? -1
      },
      finish: choice.finish_reason,
      object: comparable({
        ...completion,
        // Only streams have text beside calls. The accumulator ignores annotations and reasoning.
        choices: completion.choices.map(({ message: { annotations: _, ...message }, ...rest }) => ({
          ...rest,
          message: { ...message, content: blocks.calls > 0 ? null : message.content, reasoning_content: reasoning }
        }))
      })
    })
  }
  return {
    whole: (ask) =>
      attempt(async () => {
        const completion = await client.chat.completions.create(request(ask), withSignal(ask))
        return read(completion, reasoningOf(completion.choices[0]!.message))
      }, () => ""),
    streamed: (ask) => {
      const watch = watcher(ask)
      let reasoning = ""
      return attempt(async () => {
        const stream = client.chat.completions.stream(request(ask), withSignal(ask))
          .on("content", watch.text)
          .on("chunk", ({ choices }) => {
            for (const { delta } of choices) reasoning += reasoningOf(delta)
          })
        return read(await stream.finalChatCompletion(), reasoning)
      }, watch.shown)
    }
  }
}

const responses = (client: OpenAI): StyleClient => {
  const request = (ask: Ask) => ({
    model: nameOfModel(ask),
    input: ask.content,
    ...(ask.tools === undefined ? {} : {
      tools: ask.tools.map((tool) => ({ type: "function" as const, strict: null, ...tool }))
    }),
    ...(ask.toolChoice === undefined ? {} : {
      tool_choice: typeof ask.toolChoice === "string"
        ? ask.toolChoice
        : { type: "function" as const, name: ask.toolChoice.name }
    }),
    // A field of the gateway, not of the vendor's API.
    ...(ask.stop === undefined ? {} : { stop: ask.stop }),
    ...(ask.schema === undefined ? {} : {
      text: { format: { type: "json_schema" as const, name: "reply", schema: ask.schema } }
    })
  })
  const read = (response: OpenAI.Responses.Response, unfinished: ReadonlyArray<CutOff>): Got | Failed => {
    if (response.status === "failed") {
      return {
        _tag: "Failed",
        type: response.status,
        status: undefined,
        code: String(response.error?.code),
        message: String(response.error?.message),
        shown: response.output_text
      }
    }
    const blocks = new Blocks()
    for (const item of response.output) {
      if (item.type === "reasoning") { for (const part of item.summary) blocks.text("Reasoning", part.text) }
      if (item.type === "function_call") blocks.call(item.name, item.arguments)
      if (item.type === "message") {
        for (const part of item.content) if (part.type === "output_text") blocks.text("Text", part.text)
      }
    }
    blocks.cutOff.push(...unfinished)
    const usage = response.usage!
    return got(blocks, {
      usage: {
        prompt: usage.input_tokens,
        completion: usage.output_tokens,
        reasoning: usage.output_tokens_details.reasoning_tokens,
        cached: usage.input_tokens_details.cached_tokens
      },
      finish: response.status === "incomplete" ? String(response.incomplete_details?.reason) : String(response.status),
      object: comparable(response)
    })
  }
  return {
    whole: (ask) =>
      attempt(async () => read(await client.responses.create(request(ask), withSignal(ask)), []), () => ""),
    streamed: (ask) => {
      const watch = watcher(ask)
      const unfinished = new Map<number, { readonly name: string; arguments: string }>()
      return attempt(async () => {
        const stream = client.responses.stream({ ...request(ask), stream: true }, withSignal(ask))
          .on("response.output_text.delta", ({ delta }) => watch.text(delta))
          .on("response.output_item.added", ({ item, output_index }) => {
            if (item.type === "function_call") unfinished.set(output_index, { name: item.name, arguments: "" })
          })
          .on("response.function_call_arguments.delta", ({ delta, output_index }) => {
            unfinished.get(output_index)!.arguments += delta
          })
          .on("response.output_item.done", ({ output_index }) => unfinished.delete(output_index))
        const response = await stream.finalResponse()
        return read(response, [...unfinished.values()])
      }, watch.shown)
    }
  }
}

const messages = (client: Anthropic): StyleClient => {
  const request = (ask: Ask): Anthropic.MessageCreateParamsNonStreaming => ({
    model: ask.reasoner === true ? "msgcompat-opus-4-6" : "msgcompat-sonnet-4-5",
    max_tokens: 1000,
    messages: [{ role: "user", content: ask.content }],
    ...(ask.tools === undefined ? {} : {
      tools: ask.tools.map(({ description, name, parameters }) => ({
        name,
        description,
        input_schema: { type: "object", ...parameters }
      }))
    }),
    ...(ask.toolChoice === undefined ? {} : {
      tool_choice: ask.toolChoice === "none"
        ? { type: "none" }
        : ask.toolChoice === "required"
        ? { type: "any" }
        : { type: "tool", name: ask.toolChoice.name }
    }),
    ...(ask.stop === undefined ? {} : { stop_sequences: [...ask.stop] }),
    ...(ask.schema === undefined ? {} : {
      output_config: { format: { type: "json_schema", schema: { ...ask.schema } } }
    })
  })
  /** `deltas`: the arguments' text of each block, by index. */
  const read = (message: Anthropic.Message, deltas: ReadonlyMap<number, string>): Got => {
    const blocks = new Blocks()
    message.content.forEach((block, index) => {
      if (block.type === "thinking") blocks.text("Reasoning", block.thinking)
      if (block.type === "text") blocks.text("Text", block.text)
      if (block.type !== "tool_use") return
      // The SDK's accumulator completes truncated JSON, so the text decides.
      const text = deltas.get(index)
      blocks.call(
        block.name,
        text !== undefined && jsonOf(text) === undefined ? text : JSON.stringify(block.input)
      )
    })
    const { usage } = message
    return got(blocks, {
      usage: {
        prompt: usage.input_tokens + (usage.cache_read_input_tokens ?? 0),
        completion: usage.output_tokens,
        reasoning: usage.output_tokens_details?.thinking_tokens ?? -1,
        cached: usage.cache_read_input_tokens ?? -1
      },
      finish: String(message.stop_reason),
      object: comparable(message)
    })
  }
  return {
    whole: (ask) =>
      attempt(async () => read(await client.messages.create(request(ask), withSignal(ask)), new Map()), () => ""),
    streamed: (ask) => {
      const watch = watcher(ask)
      const deltas = new Map<number, string>()
      return attempt(async () => {
        const stream = client.messages.stream(request(ask), withSignal(ask))
          .on("text", (text) => watch.text(text))
          .on("streamEvent", (event) => {
            if (event.type === "content_block_start" && event.content_block.type === "tool_use") {
              deltas.set(event.index, "")
            }
            if (event.type === "content_block_delta" && event.delta.type === "input_json_delta") {
              deltas.set(event.index, deltas.get(event.index)! + event.delta.partial_json)
            }
          })
        return read(await stream.finalMessage(), deltas)
      }, watch.shown)
    }
  }
}

const generate = (client: GoogleGenAI): StyleClient => {
  const request = (ask: Ask) => ({
    model: nameOfModel(ask),
    contents: ask.content,
    config: {
      ...(ask.signal === undefined ? {} : { abortSignal: ask.signal }),
      ...(ask.tools === undefined ? {} : {
        tools: [{
          functionDeclarations: ask.tools.map(({ description, name, parameters }) => ({
            name,
            description,
            parametersJsonSchema: parameters
          }))
        }]
      }),
      ...(ask.toolChoice === undefined ? {} : {
        toolConfig: {
          functionCallingConfig: ask.toolChoice === "none"
            ? { mode: FunctionCallingConfigMode.NONE }
            : ask.toolChoice === "required"
            ? { mode: FunctionCallingConfigMode.ANY }
            : { mode: FunctionCallingConfigMode.ANY, allowedFunctionNames: [ask.toolChoice.name] }
        }
      }),
      ...(ask.stop === undefined ? {} : { stopSequences: [...ask.stop] }),
      ...(ask.schema === undefined ? {} : {
        responseMimeType: "application/json",
        responseJsonSchema: ask.schema
      })
    }
  })
  /** Joins a stream's chunks, because the SDK does not: all parts in order, and the other fields of the last chunk. */
  const read = (chunks: ReadonlyArray<GenerateContentResponse>): Got => {
    const blocks = new Blocks()
    const parts = chunks.flatMap((chunk): ReadonlyArray<Part> => chunk.candidates?.[0]?.content?.parts ?? [])
    for (const part of parts) {
      if (part.functionCall !== undefined) {
        blocks.call(String(part.functionCall.name), JSON.stringify(part.functionCall.args))
      } else {
        blocks.text(part.thought === true ? "Reasoning" : "Text", part.text ?? "")
      }
    }
    const last = chunks.at(-1)
    const usage = last?.usageMetadata
    const reasoning = usage?.thoughtsTokenCount ?? -1
    return got(blocks, {
      usage: {
        prompt: usage?.promptTokenCount ?? -1,
        completion: (usage?.candidatesTokenCount ?? -1) + reasoning,
        reasoning,
        cached: usage?.cachedContentTokenCount ?? -1
      },
      finish: String(last?.candidates?.[0]?.finishReason),
      object: comparable({
        usage,
        model: last?.modelVersion,
        candidates: last?.candidates?.length,
        blocks: blocks.blocks
      })
    })
  }
  return {
    whole: (ask) => attempt(async () => read([await client.models.generateContent(request(ask))]), () => ""),
    streamed: (ask) => {
      const watch = watcher(ask)
      return attempt(async () => {
        const chunks: Array<GenerateContentResponse> = []
        for await (const chunk of await client.models.generateContentStream(request(ask))) {
          chunks.push(chunk)
          for (const part of chunk.candidates?.[0]?.content?.parts ?? []) {
            if (part.thought !== true) watch.text(part.text ?? "")
          }
        }
        return read(chunks)
      }, watch.shown)
    }
  }
}

/** The SDKs, connected to a gateway. `fetch` may replace the socket; the key may be a direct token. */
export const styleClients = (
  url: string,
  { apiKey = businessKey, fetch = globalThis.fetch }: { readonly apiKey?: string; readonly fetch?: Fetch } = {}
): Record<StyleName, StyleClient> => {
  const openai = new OpenAI({ baseURL: `${url}/v1`, apiKey, maxRetries: 0, fetch })
  const anthropic = new Anthropic({ baseURL: url, apiKey, maxRetries: 0, logLevel: "off", fetch })
  const genai = new GoogleGenAI({
    apiKey,
    httpOptions: { baseUrl: url, apiVersion: "v1beta", fetch }
  })
  return { chat: chat(openai), responses: responses(openai), messages: messages(anthropic), generate: generate(genai) }
}
