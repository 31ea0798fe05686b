// The APIs of callers, as plain requests: one question as each API has it, and what its replies say in common terms.

/** The APIs of callers for completions. */
export const apis = ["chat", "Responses", "messages", "content generation"] as const
export type Api = typeof apis[number]

interface Call {
  readonly id?: string
  readonly name: string
  readonly arguments: unknown
}

/** A turn of a conversation. */
export type Turn =
  | { readonly user: string }
  | { readonly assistant: string; readonly thinking?: string | undefined; readonly calls?: ReadonlyArray<Call> }
  | { readonly result: string; readonly of: Call }

/** A question that every API can ask. */
export interface Question {
  readonly turns: ReadonlyArray<Turn>
  readonly maxTokens?: number
  readonly temperature?: number
  readonly seed?: number
  readonly tools?: ReadonlyArray<{ readonly name: string; readonly parameters: object }>
  /** What a function of the Responses API says of strictness, which its default is not. */
  readonly strict?: false
  readonly choice?: "auto" | "none" | "required" | { readonly name: string }
  /** Thinking on or off, or its most tokens. */
  readonly thinking?: "on" | "off" | number
  readonly stop?: ReadonlyArray<string>
  readonly schema?: object
  /** The base64 data of a PNG at the end of the last turn. */
  readonly image?: string
  /** Fields that are added as they stand. */
  readonly fields?: object
}

/** What a reply says. */
export interface Reply {
  readonly status: number
  readonly text: string
  readonly thinking: string
  readonly calls: ReadonlyArray<Call>
  /** The API's word for the end; `undefined` if the reply does not say that it is over. */
  readonly finish: string | undefined
  readonly usage: { readonly input: number; readonly output: number } | undefined
  /** The message of an error, as a body or within the stream. */
  readonly error: string | undefined
  /** What was received, as it was. */
  readonly raw: string
  /** The gateway's name of the server that answered, where it has several. */
  readonly upstream?: string
}

type Json = { readonly [key: string]: unknown }

const at = (value: unknown, ...keys: ReadonlyArray<string | number>): unknown =>
  keys.reduce<unknown>(
    (inner, key) =>
      typeof inner === "object" && inner !== null ? (inner as Record<string | number, unknown>)[key] : undefined,
    value
  )
const isGiven = (value: unknown): boolean => value !== undefined && value !== null
const textAt = (value: unknown, ...keys: ReadonlyArray<string | number>): string => {
  const found = at(value, ...keys)
  return typeof found === "string" ? found : ""
}
const numberAt = (value: unknown, ...keys: ReadonlyArray<string | number>): number => Number(at(value, ...keys) ?? 0)
const listAt = (value: unknown, ...keys: ReadonlyArray<string | number>): ReadonlyArray<unknown> => {
  const found = at(value, ...keys)
  return Array.isArray(found) ? found : []
}

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const given = (fields: Record<string, unknown>): Json =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))

const idOf = ({ id, name }: Call): string => id ?? `call_${name}`

/** What an API is: its address, its bodies and its replies. */
interface Spoken {
  readonly path: (model: string, streamed: boolean) => string
  readonly body: (model: string, question: Question, streamed: boolean) => Json
  readonly whole: (body: unknown) => Omit<Reply, "raw" | "status" | "error">
  /** Folds the events of a stream. */
  readonly streamed: (events: ReadonlyArray<unknown>) => Omit<Reply, "raw" | "status" | "error">
}

const picture = (image: string) => `data:image/png;base64,${image}`

const effort = (thinking: Question["thinking"]) =>
  thinking === undefined ? undefined : thinking === "off" ? "none" : thinking === "on" ? "medium" : "low"

const chatUsage = (value: unknown): Reply["usage"] =>
  !isGiven(at(value, "usage"))
    ? undefined
    : { input: numberAt(value, "usage", "prompt_tokens"), output: numberAt(value, "usage", "completion_tokens") }

const chat: Spoken = {
  path: () => "/v1/chat/completions",
  body: (
    model,
    { choice, fields, image, maxTokens, schema, seed, stop, temperature, thinking, tools, turns },
    streamed
  ) => ({
    model,
    messages: turns.map((turn, i) => {
      if ("user" in turn) {
        return {
          role: "user",
          content: image === undefined || i < turns.length - 1
            ? turn.user
            : [{ type: "text", text: turn.user }, { type: "image_url", image_url: { url: picture(image) } }]
        }
      }
      if ("result" in turn) return { role: "tool", tool_call_id: idOf(turn.of), content: turn.result }
      return given({
        role: "assistant",
        content: turn.assistant,
        reasoning_content: turn.thinking,
        reasoning: turn.thinking,
        tool_calls: turn.calls?.map((call) => ({
          id: idOf(call),
          type: "function",
          function: { name: call.name, arguments: JSON.stringify(call.arguments) }
        }))
      })
    }),
    ...given({
      max_tokens: maxTokens,
      temperature,
      seed,
      stop,
      tools: tools?.map((tool) => ({ type: "function", function: tool })),
      tool_choice: typeof choice === "object" ? { type: "function", function: choice } : choice,
      response_format: schema && { type: "json_schema", json_schema: { name: "answer", strict: true, schema } },
      reasoning_effort: effort(thinking)
    }),
    ...(streamed ? { stream: true, stream_options: { include_usage: true } } : {}),
    ...fields
  }),
  whole: (body) => {
    const message = at(body, "choices", 0, "message")
    return {
      text: textAt(message, "content"),
      thinking: textAt(message, "reasoning_content") || textAt(message, "reasoning"),
      calls: listAt(message, "tool_calls").map((call) => ({
        id: textAt(call, "id"),
        name: textAt(call, "function", "name"),
        arguments: parsed(textAt(call, "function", "arguments"))
      })),
      finish: textAt(body, "choices", 0, "finish_reason") || undefined,
      usage: chatUsage(body)
    }
  },
  streamed: (events) => {
    const deltas = events.map((event) => at(event, "choices", 0, "delta"))
    const calls: Array<{ id: string; name: string; text: string }> = []
    for (const call of deltas.flatMap((delta) => listAt(delta, "tool_calls"))) {
      const own = calls[numberAt(call, "index")] ??= { id: "", name: "", text: "" }
      own.id ||= textAt(call, "id")
      own.name ||= textAt(call, "function", "name")
      own.text += textAt(call, "function", "arguments")
    }
    const last = events.map((event) => textAt(event, "choices", 0, "finish_reason")).find((word) => word !== "")
    return {
      text: deltas.map((delta) => textAt(delta, "content")).join(""),
      thinking: deltas.map((delta) => textAt(delta, "reasoning_content") || textAt(delta, "reasoning")).join(""),
      calls: calls.map(({ id, name, text }) => ({ id, name, arguments: parsed(text) })),
      finish: last,
      usage: events.map(chatUsage).findLast((usage) => usage !== undefined)
    }
  }
}

const responsesReply = (body: unknown): Omit<Reply, "raw" | "status" | "error"> => {
  const output = listAt(body, "output")
  const texts = (type: string, field: string) =>
    output.filter((item) => textAt(item, "type") === type)
      .flatMap((item) => listAt(item, field)).map((part) => textAt(part, "text")).join("")
  const usage = at(body, "usage")
  return {
    text: texts("message", "content"),
    thinking: texts("reasoning", "content") || texts("reasoning", "summary"),
    calls: output.filter((item) => textAt(item, "type") === "function_call").map((item) => ({
      id: textAt(item, "call_id"),
      name: textAt(item, "name"),
      arguments: parsed(textAt(item, "arguments"))
    })),
    finish: textAt(body, "incomplete_details", "reason") || textAt(body, "status") || undefined,
    usage: !isGiven(usage)
      ? undefined
      : { input: numberAt(usage, "input_tokens"), output: numberAt(usage, "output_tokens") }
  }
}

const responses: Spoken = {
  path: () => "/v1/responses",
  body: (
    model,
    { choice, fields, image, maxTokens, schema, seed, stop, strict, temperature, thinking, tools, turns },
    streamed
  ) => ({
    model,
    store: false,
    input: turns.flatMap((turn, i): ReadonlyArray<Json> => {
      if ("user" in turn) {
        return [{
          role: "user",
          content: [
            { type: "input_text", text: turn.user },
            ...(image === undefined || i < turns.length - 1
              ? []
              : [{ type: "input_image", image_url: picture(image) }])
          ]
        }]
      }
      if ("result" in turn) return [{ type: "function_call_output", call_id: idOf(turn.of), output: turn.result }]
      return [
        ...(turn.thinking === undefined
          ? []
          : [{ type: "reasoning", summary: [], content: [{ type: "reasoning_text", text: turn.thinking }] }]),
        ...(turn.assistant === ""
          ? []
          : [{ type: "message", role: "assistant", content: [{ type: "output_text", text: turn.assistant }] }]),
        ...(turn.calls ?? []).map((call) => ({
          type: "function_call",
          call_id: idOf(call),
          name: call.name,
          arguments: JSON.stringify(call.arguments)
        }))
      ]
    }),
    ...given({
      max_output_tokens: maxTokens,
      temperature,
      // The API has neither; the gateway takes both.
      seed,
      stop,
      tools: tools?.map((tool) => ({ type: "function", ...tool, ...(strict === undefined ? {} : { strict }) })),
      tool_choice: typeof choice === "object" ? { type: "function", ...choice } : choice,
      text: schema && { format: { type: "json_schema", name: "answer", strict: true, schema } },
      reasoning: thinking && { effort: effort(thinking) }
    }),
    ...(streamed ? { stream: true } : {}),
    ...fields
  }),
  whole: responsesReply,
  streamed: (events) => {
    const last = events.find((event) => /^response\.(?:completed|incomplete|failed)$/.test(textAt(event, "type")))
    return last === undefined
      ? {
        ...responsesReply(undefined),
        text: events.filter((event) => textAt(event, "type") === "response.output_text.delta")
          .map((event) => textAt(event, "delta")).join("")
      }
      : responsesReply(at(last, "response"))
  }
}

const messagesUsage = (usage: unknown): Reply["usage"] =>
  !isGiven(usage) ? undefined : {
    input: numberAt(usage, "input_tokens") + numberAt(usage, "cache_read_input_tokens") +
      numberAt(usage, "cache_creation_input_tokens"),
    output: numberAt(usage, "output_tokens")
  }

const messages: Spoken = {
  path: () => "/v1/messages",
  body: (model, { choice, fields, image, maxTokens, schema, stop, temperature, thinking, tools, turns }, streamed) => ({
    model,
    max_tokens: maxTokens ?? 256,
    messages: turns.map((turn, i) => {
      if ("user" in turn) {
        return {
          role: "user",
          content: [
            { type: "text", text: turn.user },
            ...(image === undefined || i < turns.length - 1
              ? []
              : [{ type: "image", source: { type: "base64", media_type: "image/png", data: image } }])
          ]
        }
      }
      if ("result" in turn) {
        return { role: "user", content: [{ type: "tool_result", tool_use_id: idOf(turn.of), content: turn.result }] }
      }
      return {
        role: "assistant",
        content: [
          ...(turn.thinking === undefined ? [] : [{ type: "thinking", thinking: turn.thinking, signature: "" }]),
          ...(turn.assistant === "" ? [] : [{ type: "text", text: turn.assistant }]),
          ...(turn.calls ?? []).map((call) => ({
            type: "tool_use",
            id: idOf(call),
            name: call.name,
            input: call.arguments
          }))
        ]
      }
    }),
    ...given({
      temperature,
      stop_sequences: stop,
      tools: tools?.map(({ name, parameters }) => ({ name, input_schema: parameters })),
      tool_choice: choice && (typeof choice === "object"
        ? { type: "tool", ...choice }
        : { type: choice === "required" ? "any" : choice }),
      output_config: schema && { format: { type: "json_schema", schema } },
      thinking: thinking && (thinking === "off"
        ? { type: "disabled" }
        : { type: "enabled", budget_tokens: thinking === "on" ? 1024 : thinking })
    }),
    ...(streamed ? { stream: true } : {}),
    ...fields
  }),
  whole: (body) => {
    const blocks = listAt(body, "content")
    const texts = (type: string, field: string) =>
      blocks.filter((block) => textAt(block, "type") === type).map((block) => textAt(block, field)).join("")
    return {
      text: texts("text", "text"),
      thinking: texts("thinking", "thinking"),
      calls: blocks.filter((block) => textAt(block, "type") === "tool_use").map((block) => ({
        id: textAt(block, "id"),
        name: textAt(block, "name"),
        arguments: at(block, "input")
      })),
      finish: textAt(body, "stop_reason") || undefined,
      usage: messagesUsage(at(body, "usage"))
    }
  },
  streamed: (events) => {
    const of = (type: string) => events.filter((event) => textAt(event, "type") === type)
    const blocks: Array<{ block: unknown; text: string }> = []
    for (const event of of("content_block_start")) {
      blocks[numberAt(event, "index")] = { block: at(event, "content_block"), text: "" }
    }
    for (const event of of("content_block_delta")) {
      const delta = at(event, "delta")
      const block = blocks[numberAt(event, "index")]
      if (block !== undefined) {
        block.text += textAt(delta, "text") + textAt(delta, "thinking") + textAt(delta, "partial_json")
      }
    }
    const texts = (type: string) =>
      blocks.filter(({ block }) => textAt(block, "type") === type).map(({ text }) => text).join("")
    const last = of("message_delta").at(-1)
    return {
      text: texts("text"),
      thinking: texts("thinking"),
      calls: blocks.filter(({ block }) => textAt(block, "type") === "tool_use").map(({ block, text }) => ({
        id: textAt(block, "id"),
        name: textAt(block, "name"),
        arguments: parsed(text === "" ? "{}" : text)
      })),
      // The end is the event after the reason.
      finish: of("message_stop").length === 0 ? undefined : textAt(last, "delta", "stop_reason") || undefined,
      usage: messagesUsage({
        ...at(of("message_start")[0], "message", "usage") as object,
        ...at(last, "usage") as object
      })
    }
  }
}

const generateReply = (bodies: ReadonlyArray<unknown>): Omit<Reply, "raw" | "status" | "error"> => {
  const parts = bodies.flatMap((body) => listAt(body, "candidates", 0, "content", "parts"))
  const texts = (isThought: boolean) =>
    parts.filter((part) => (at(part, "thought") === true) === isThought).map((part) => textAt(part, "text")).join("")
  const usage = bodies.map((body) => at(body, "usageMetadata")).findLast(isGiven)
  return {
    text: texts(false),
    thinking: texts(true),
    calls: parts.filter((part) => at(part, "functionCall") !== undefined).map((part) => ({
      ...given({ id: at(part, "functionCall", "id") }),
      name: textAt(part, "functionCall", "name"),
      arguments: at(part, "functionCall", "args")
    })),
    finish: bodies.map((body) => textAt(body, "candidates", 0, "finishReason")).find((word) => word !== ""),
    usage: usage === undefined ? undefined : {
      input: numberAt(usage, "promptTokenCount"),
      output: numberAt(usage, "candidatesTokenCount") + numberAt(usage, "thoughtsTokenCount")
    }
  }
}

const generate: Spoken = {
  path: (model, streamed) =>
    `/v1beta/models/${encodeURIComponent(model)}:${streamed ? "streamGenerateContent?alt=sse" : "generateContent"}`,
  body: (_model, { choice, fields, image, maxTokens, schema, seed, stop, temperature, thinking, tools, turns }) => ({
    contents: turns.map((turn, i) => {
      if ("user" in turn) {
        return {
          role: "user",
          parts: [
            { text: turn.user },
            ...(image === undefined || i < turns.length - 1
              ? []
              : [{ inlineData: { mimeType: "image/png", data: image } }])
          ]
        }
      }
      if ("result" in turn) {
        return {
          role: "user",
          parts: [{ functionResponse: { name: turn.of.name, response: { output: turn.result } } }]
        }
      }
      return {
        role: "model",
        parts: [
          ...(turn.thinking === undefined ? [] : [{ text: turn.thinking, thought: true }]),
          ...(turn.assistant === "" ? [] : [{ text: turn.assistant }]),
          ...(turn.calls ?? []).map(({ arguments: args, name }) => ({ functionCall: { name, args } }))
        ]
      }
    }),
    ...given({
      tools: tools && [{
        functionDeclarations: tools.map(({ name, parameters }) => ({ name, parametersJsonSchema: parameters }))
      }],
      toolConfig: choice && {
        functionCallingConfig: typeof choice === "object"
          ? { mode: "ANY", allowedFunctionNames: [choice.name] }
          : { mode: choice === "required" ? "ANY" : choice.toUpperCase() }
      }
    }),
    generationConfig: given({
      maxOutputTokens: maxTokens,
      temperature,
      seed,
      stopSequences: stop,
      responseMimeType: schema && "application/json",
      responseJsonSchema: schema,
      thinkingConfig: thinking === undefined
        ? undefined
        : {
          includeThoughts: thinking !== "off",
          thinkingBudget: thinking === "off" ? 0 : thinking === "on" ? -1 : thinking
        }
    }),
    ...fields
  }),
  whole: (body) => generateReply([body]),
  streamed: generateReply
}

const spoken: Readonly<Record<Api, Spoken>> = { chat, Responses: responses, messages, "content generation": generate }

/** The objects of an event stream. */
export const eventsIn = (text: string): ReadonlyArray<unknown> =>
  text.split("\n").filter((line) => line.startsWith("data:")).map((line) => parsed(line.slice(5).trim()))
    .filter((event) => event !== undefined)

const errorOf = (body: unknown): string | undefined => {
  const message = textAt(body, "error", "message") || textAt(body, "error") ||
    textAt(body, "response", "error", "message") || textAt(body, "message") || textAt(body, "detail")
  return message === "" ? undefined : message
}

/** How a question is sent. */
export interface Sending {
  readonly url: string
  readonly key?: string
  readonly model: string
  readonly api: Api
  readonly streamed?: boolean
  readonly signal?: AbortSignal
  readonly headers?: Readonly<Record<string, string>>
  /** Called with each piece of the body as it arrives. */
  readonly onPiece?: (text: string) => void
}

/** The longest that an answer may take, in milliseconds. */
const longestAnswer = 120_000

/** The request of a question: its address and its body. */
export const requestOf = (
  { api, model, streamed = false, url }: Pick<Sending, "api" | "model" | "streamed" | "url">,
  question: Question
) => ({ url: `${url}${spoken[api].path(model, streamed)}`, body: spoken[api].body(model, question, streamed) })

/** Asks a question. A connection that breaks is a reply without an end. Rejects if it takes too long. */
export const ask = async (sending: Sending, question: Question): Promise<Reply> => {
  const { api, headers, key, onPiece, signal } = sending
  const { body, url } = requestOf(sending, question)
  const tooLong = AbortSignal.timeout(longestAnswer)
  const response = await fetch(url, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
      ...(api === "messages" ? { "anthropic-version": "2023-06-01" } : {}),
      ...headers
    },
    body: JSON.stringify(body),
    signal: signal === undefined ? tooLong : AbortSignal.any([signal, tooLong])
  })
  let raw = ""
  let broken: string | undefined
  try {
    const decoder = new TextDecoder()
    for await (const piece of response.body ?? []) {
      const text = decoder.decode(piece, { stream: true })
      raw += text
      onPiece?.(text)
    }
  } catch (error) {
    if (tooLong.aborted) throw error
    broken = `the connection broke: ${String(error)}`
  }
  const isStream = response.headers.get("content-type")?.includes("event-stream") === true
  const events = isStream ? eventsIn(raw) : [parsed(raw)]
  const said = isStream ? spoken[api].streamed(events) : spoken[api].whole(events[0])
  const error = events.filter((event) =>
    isGiven(at(event, "error")) || /error|failed/.test(textAt(event, "type")) || response.status >= 400
  )
    .map(errorOf).find((message) => message !== undefined)
  const upstream = response.headers.get("x-gateway-upstream") ?? undefined
  return {
    status: response.status,
    ...said,
    error: error ?? broken,
    raw,
    ...(upstream === undefined ? {} : { upstream })
  }
}
