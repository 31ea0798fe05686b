/**
 * What each kind of server refuses of what the gateway wrote, in every style, whole and streamed: one gateway, whose servers decide by the
 * model. A pair that cannot meet a row says why, and the field is shown to be absent.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import type { Json } from "../../src/domain/json.ts"
import { type Received, type Stand, startStand } from "../golden/stand.ts"
import { businessKey } from "../support/gateway.ts"
import { type Answer, json } from "../support/openaiServer.ts"
import { plainRequests } from "../support/plainRequests.ts"
import { type Block, type StyleName, styleNames } from "../support/styleClients.ts"
import { drivers } from "../upstream/histories/histories.ts"

type Fields = { readonly [field: string]: Json }
type Unknown = { readonly [field: string]: unknown }
type OfEach<Value> = Readonly<Record<StyleName, Value>>

/** The value at a path. */
const at = (value: unknown, path: string): unknown =>
  path.split(".").reduce<unknown>((inner, key) => (inner as Unknown | undefined)?.[key], value)

/** A server of a contract that refuses a field. */
interface Refusing {
  /** True for a body with what is refused. */
  readonly has: (body: Unknown) => boolean
  readonly message: string
  readonly param?: string
  readonly status?: number
  /** What leaves the second time, by paths; `undefined` for what is absent. */
  readonly leaves: Unknown
}

/** A server whose contract has no such field: why, and paths of its body that stay absent. */
interface NeverGets {
  readonly why: string
  readonly absent: ReadonlyArray<string>
}

/** A client that cannot write it: why, and what it can write in its place, which no server refuses. */
interface CannotWrite {
  readonly why: string
  readonly writes: Fields
}

interface Row {
  readonly name: string
  /** What a client of the style writes, and the names of what had no effect; by server where they differ. */
  readonly asks: OfEach<Fields | CannotWrite>
  readonly ignored: (style: StyleName, server: StyleName) => string | null
  readonly servers: OfEach<Refusing | NeverGets>
  /** The model's entry, by server. */
  readonly entry?: Partial<OfEach<Fields>>
  /** A client of the server's contract gets a reply too: the gateway itself has added the field, or changes it and keeps the meaning. */
  readonly repairsOwn?: ReadonlyArray<StyleName>
  readonly reply?: ReadonlyArray<Block>
  readonly text?: string
}

const cannotWrite = (asks: Fields | CannotWrite): asks is CannotWrite => "writes" in asks
const neverGets = (server: Refusing | NeverGets): server is NeverGets => "absent" in server

const openAi = (param: string, value?: string) =>
  value === undefined
    ? { message: `Unsupported parameter: '${param}' is not supported with this model.`, param }
    : { message: value, param }

const limitOf = (body: Unknown) => Number(body["max_tokens"] ?? body["max_completion_tokens"])
const thinkingConfig = "generationConfig.thinkingConfig"
const text = JSON.stringify

const limits: OfEach<Fields> = {
  chat: { max_completion_tokens: 32_000 },
  responses: { max_output_tokens: 32_000 },
  messages: { max_tokens: 32_000 },
  generate: { generationConfig: { maxOutputTokens: 32_000 } }
}
const limitNames: OfEach<string> = {
  chat: "max_completion_tokens",
  responses: "max_output_tokens",
  messages: "max_tokens",
  generate: "generationConfig.maxOutputTokens"
}

const effortNames: OfEach<string> = {
  chat: "reasoning_effort",
  responses: "reasoning.effort",
  messages: "thinking",
  generate: thinkingConfig
}

const xhigh = {
  chat: { reasoning_effort: "xhigh" },
  responses: { reasoning: { effort: "xhigh" } },
  messages: { max_tokens: 4_096, thinking: { type: "adaptive" }, output_config: { effort: "xhigh" } }
} as const
/** The levels of content generation end at HIGH. */
const high = { generationConfig: { thinkingConfig: { thinkingLevel: "HIGH" } } } as const

const sampled = (name: string, key: string, value: number): OfEach<Fields> => ({
  chat: { [name]: value },
  responses: { [name]: value },
  messages: { [name]: value },
  generate: { generationConfig: { [key]: value } }
})
const sampledName = (name: string, key: string) => (style: StyleName) =>
  style === "generate" ? `generationConfig.${key}` : name

const sampling = (name: string, key: string, value: number): Row => ({
  name,
  asks: sampled(name, key, value),
  ignored: sampledName(name, key),
  servers: {
    chat: { has: (body) => body[name] !== undefined, ...openAi(name), leaves: { [name]: undefined } },
    responses: name === "top_k"
      ? { why: "the contract has no such parameter", absent: [name] }
      : { has: (body) => body[name] !== undefined, ...openAi(name), leaves: { [name]: undefined } },
    messages: {
      has: (body) => body[name] !== undefined,
      message: `\`${name}\` is deprecated for this model.`,
      leaves: { [name]: undefined }
    },
    generate: {
      has: (body) => at(body, `generationConfig.${key}`) !== undefined,
      message: `Invalid JSON payload received. Unknown name "${key}" at 'generation_config': Cannot find field.`,
      leaves: { [`generationConfig.${key}`]: undefined }
    }
  }
})

const city = { type: "object", properties: { city: { type: "string" } }, required: ["city"] }
const called = { _tag: "Call", name: "reply", arguments: { city: "Paris" } } as const

const noSuchWord = (...absent: ReadonlyArray<string>): NeverGets => ({ why: "the contract has no such word", absent })

const rows: ReadonlyArray<Row> = [
  {
    name: "a limit above the most of a model",
    asks: limits,
    ignored: (style) => limitNames[style],
    servers: {
      chat: {
        has: (body) => limitOf(body) > 8_192,
        message: "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]",
        leaves: {}
      },
      responses: {
        has: (body) => Number(body["max_output_tokens"]) > 8_192,
        message:
          "Invalid 'max_output_tokens': integer above maximum value. Expected a value <= 8192, but got 32000 instead.",
        param: "max_output_tokens",
        leaves: { max_output_tokens: 8_192 }
      },
      messages: {
        has: (body) => Number(body["max_tokens"]) > 8_192,
        message: "max_tokens: 32000 > 8192, which is the maximum allowed number of output tokens for claude-3-5-haiku",
        leaves: { max_tokens: 8_192 }
      },
      generate: {
        has: (body) => Number(at(body, "generationConfig.maxOutputTokens")) > 8_192,
        message:
          "Unable to submit request because it has a maxOutputTokens value of 32000 but the supported range is from 1 (inclusive) to 8193 (exclusive).",
        leaves: { "generationConfig.maxOutputTokens": 8_192 }
      }
    }
  },
  {
    name: "a limit above what the prompt leaves of the window",
    asks: limits,
    ignored: (style) => limitNames[style],
    servers: {
      chat: {
        has: (body) => limitOf(body) > 24_768,
        message:
          "This model's maximum context length is 32768 tokens. However, you requested 40000 tokens (8000 in the messages, 32000 in the completion).",
        leaves: {}
      },
      responses: {
        has: (body) => Number(body["max_output_tokens"]) > 24_768,
        message:
          "This model's maximum context length is 32768 tokens. However, your request has 8000 input tokens plus 32000 'max_output_tokens'.",
        leaves: {}
      },
      messages: {
        has: (body) => Number(body["max_tokens"]) > 24_768,
        message:
          "input length and `max_tokens` exceed context limit: 8000 + 32000 > 32768, decrease input length or `max_tokens` and try again",
        leaves: {}
      },
      generate: {
        has: (body) => Number(at(body, "generationConfig.maxOutputTokens")) > 24_768,
        message:
          "This model's maximum context length is 32768 tokens. However, you requested 32000 output tokens and your prompt contains at least 8000 input tokens.",
        leaves: {}
      }
    }
  },
  {
    name: "an effort in the place of no thinking",
    asks: {
      chat: { reasoning_effort: "none" },
      responses: { reasoning: { effort: "none" } },
      messages: { thinking: { type: "disabled" } },
      generate: { generationConfig: { thinkingConfig: { thinkingBudget: 0 } } }
    },
    ignored: (style) => style === "generate" ? `${thinkingConfig}.thinkingBudget` : effortNames[style],
    servers: {
      chat: {
        has: ({ reasoning_effort }) => reasoning_effort === "none",
        message:
          "Failed to deserialize the JSON body into the target type: reasoning_effort: unknown variant `none`, expected one of `high`, `low`, `medium`, `max`, `xhigh` at line 1 column 68",
        leaves: { reasoning_effort: undefined }
      },
      responses: {
        has: (body) => at(body, "reasoning.effort") === "none",
        ...openAi(
          "reasoning.effort",
          "Unsupported value: 'none' is not supported with the 'gpt-5.1-codex' model. Supported values are: 'low', 'medium', and 'high'."
        ),
        leaves: { "reasoning.effort": undefined }
      },
      messages: {
        has: (body) => at(body, "thinking.type") === "disabled",
        message: "Reasoning is mandatory for this endpoint and cannot be disabled.",
        leaves: { thinking: undefined }
      },
      generate: {
        has: (body) => at(body, `${thinkingConfig}.thinkingBudget`) === 0,
        message: "Budget 0 is invalid. This model only works in thinking mode.",
        leaves: { [`${thinkingConfig}.thinkingBudget`]: undefined }
      }
    }
  },
  {
    name: "an effort in the place of thinking",
    asks: {
      chat: { reasoning_effort: "medium" },
      responses: { reasoning: { effort: "medium" } },
      messages: { max_tokens: 4_096, thinking: { type: "enabled", budget_tokens: 2_048 } },
      generate: { generationConfig: { thinkingConfig: { thinkingBudget: 2_048 } } }
    },
    ignored: (style) => style === "generate" ? `${thinkingConfig}.thinkingBudget` : effortNames[style],
    servers: {
      chat: {
        has: (body) => body["reasoning_effort"] !== undefined,
        message: "Unrecognized request argument supplied: reasoning_effort",
        leaves: { reasoning_effort: undefined }
      },
      responses: {
        has: (body) => at(body, "reasoning.effort") !== undefined,
        ...openAi("reasoning.effort"),
        leaves: { "reasoning.effort": undefined }
      },
      messages: {
        has: (body) => body["thinking"] !== undefined,
        message: "\"thinking.type.enabled\" is not supported for this model.",
        leaves: { thinking: undefined }
      },
      generate: {
        has: (body) => at(body, thinkingConfig) !== undefined,
        message: "Thinking is not enabled for models/gemini-2.0-flash",
        leaves: { [thinkingConfig]: undefined }
      }
    }
  },
  {
    name: "an effort that the model does not have",
    asks: {
      ...xhigh,
      generate: { why: "its highest level is HIGH", writes: high }
    },
    ignored: (style) => style === "messages" ? "output_config.effort" : effortNames[style],
    entry: { messages: { thinking: "effort" } },
    servers: {
      chat: {
        has: ({ reasoning_effort }) => reasoning_effort === "xhigh",
        message:
          "Unsupported value: 'reasoning_effort' does not support 'xhigh' with this model. Supported values are: 'low', 'medium', and 'high'.",
        param: "reasoning_effort",
        leaves: { reasoning_effort: "high" }
      },
      responses: {
        has: (body) => at(body, "reasoning.effort") === "xhigh",
        ...openAi(
          "reasoning.effort",
          "Unsupported value: 'xhigh' is not supported with the 'gpt-5.1-codex' model. Supported values are: 'low', 'medium', and 'high'."
        ),
        leaves: { "reasoning.effort": "high" }
      },
      messages: {
        has: (body) => at(body, "output_config.effort") === "xhigh",
        message: "output_config.effort: Input should be 'low', 'medium' or 'high'",
        leaves: { "output_config.effort": "high" }
      },
      generate: { why: "its highest level is HIGH", absent: [`${thinkingConfig}.effort`] }
    }
  },
  {
    name: "verbosity",
    asks: {
      chat: { verbosity: "low" },
      responses: { text: { verbosity: "low" } },
      messages: { verbosity: "low" },
      generate: { verbosity: "low" }
    },
    ignored: (style) => style === "responses" ? "text.verbosity" : "verbosity",
    servers: {
      chat: {
        has: (body) => body["verbosity"] !== undefined,
        message: "property 'verbosity' is unsupported",
        leaves: { verbosity: undefined }
      },
      responses: {
        has: (body) => at(body, "text.verbosity") !== undefined,
        ...openAi("text.verbosity"),
        leaves: { "text.verbosity": undefined }
      },
      messages: noSuchWord("verbosity", "text"),
      generate: noSuchWord("verbosity", "text", "generationConfig.verbosity")
    }
  },
  {
    name: "a client's name of a cache",
    asks: {
      chat: { prompt_cache_key: "a" },
      responses: { prompt_cache_key: "a" },
      messages: { prompt_cache_key: "a" },
      generate: { prompt_cache_key: "a" }
    },
    ignored: () => "prompt_cache_key",
    servers: {
      chat: {
        has: (body) => body["prompt_cache_key"] !== undefined,
        message: "Extra inputs are not permitted, field: 'prompt_cache_key', value: 'a'",
        status: 422,
        leaves: { prompt_cache_key: undefined }
      },
      responses: {
        has: (body) => body["prompt_cache_key"] !== undefined,
        message: "Unknown parameter: 'prompt_cache_key'.",
        leaves: { prompt_cache_key: undefined }
      },
      messages: noSuchWord("prompt_cache_key"),
      generate: noSuchWord("prompt_cache_key")
    }
  },
  {
    name: "the gateway's name of a cache",
    asks: { chat: {}, responses: {}, messages: {}, generate: {} },
    ignored: () => null,
    repairsOwn: ["chat", "responses"],
    servers: {
      chat: {
        has: (body) => body["prompt_cache_key"] !== undefined,
        message: "Unknown parameter: 'prompt_cache_key'.",
        leaves: { prompt_cache_key: undefined }
      },
      responses: {
        has: (body) => body["prompt_cache_key"] !== undefined,
        message: "json: unknown field \"prompt_cache_key\"",
        leaves: { prompt_cache_key: undefined }
      },
      messages: noSuchWord("prompt_cache_key"),
      generate: noSuchWord("prompt_cache_key")
    }
  },
  sampling("temperature", "temperature", 0.5),
  sampling("top_p", "topP", 0.5),
  sampling("top_k", "topK", 3),
  {
    name: "a penalty",
    asks: {
      ...sampled("presence_penalty", "presencePenalty", 0.5),
      messages: { why: "the contract has no such parameter", writes: {} }
    },
    ignored: sampledName("presence_penalty", "presencePenalty"),
    servers: {
      chat: {
        has: (body) => body["presence_penalty"] !== undefined,
        message: "Model grok-4.5 does not support parameter presencePenalty.",
        leaves: { presence_penalty: undefined }
      },
      responses: noSuchWord("presence_penalty"),
      messages: noSuchWord("presence_penalty"),
      generate: {
        has: (body) => at(body, "generationConfig.presencePenalty") !== undefined,
        message: "Penalty is not enabled for this model",
        leaves: { "generationConfig.presencePenalty": undefined }
      }
    }
  },
  {
    name: "the thinking of an earlier turn",
    asks: {
      chat: {
        messages: [{ role: "user", content: "Hi" }, { role: "assistant", content: "Yes", reasoning_content: "Hm" }, {
          role: "user",
          content: "Go"
        }]
      },
      responses: {
        input: [
          { role: "user", content: "Hi" },
          { type: "reasoning", summary: [{ type: "summary_text", text: "Hm" }] },
          { role: "assistant", content: "Yes" },
          { role: "user", content: "Go" }
        ]
      },
      messages: {
        messages: [
          { role: "user", content: "Hi" },
          {
            role: "assistant",
            content: [{ type: "thinking", thinking: "Hm", signature: "c2ln" }, { type: "text", text: "Yes" }]
          },
          { role: "user", content: "Go" }
        ]
      },
      generate: {
        contents: [
          { role: "user", parts: [{ text: "Hi" }] },
          { role: "model", parts: [{ text: "Hm", thought: true }, { text: "Yes" }] },
          { role: "user", parts: [{ text: "Go" }] }
        ]
      }
    },
    ignored: () => "sent.messages.reasoning_content",
    repairsOwn: ["chat"],
    servers: {
      chat: {
        has: (body) => JSON.stringify(body["messages"]).includes("reasoning_content"),
        message:
          "messages.1.assistant.reasoning_content: property 'messages.1.assistant.reasoning_content' is unsupported",
        status: 422,
        leaves: { "messages.1.content": "Yes", "messages.1.reasoning": "Hm" }
      },
      responses: { why: "the contract has items for it", absent: ["messages"] },
      messages: { why: "the contract has blocks for it", absent: ["messages.1.reasoning_content"] },
      generate: { why: "the contract has parts for it", absent: ["messages"] }
    }
  },
  {
    name: "tools beside a schema",
    asks: {
      chat: {
        tools: [{ type: "function", function: { name: "weather", parameters: city } }],
        response_format: { type: "json_schema", json_schema: { name: "city", schema: city } }
      },
      responses: {
        tools: [{ type: "function", name: "weather", parameters: city }],
        text: { format: { type: "json_schema", name: "city", schema: city } }
      },
      messages: {
        tools: [{ name: "weather", input_schema: city }],
        output_config: { format: { type: "json_schema", schema: city } }
      },
      generate: {
        tools: [{ functionDeclarations: [{ name: "weather", parametersJsonSchema: city }] }],
        generationConfig: { responseMimeType: "application/json", responseJsonSchema: city }
      }
    },
    ignored: (style) =>
      ({
        chat: "response_format",
        responses: "text.format",
        messages: "output_config.format",
        generate: "generationConfig.responseJsonSchema"
      })[style],
    repairsOwn: ["chat"],
    reply: [called],
    text: text(called.arguments),
    servers: {
      chat: {
        has: (body) => body["response_format"] !== undefined,
        message: "json mode cannot be combined with tool/function calling",
        leaves: { response_format: undefined, tool_choice: "required" }
      },
      responses: {
        has: (body) => at(body, "text.format") !== undefined,
        message: "\"tools\" is incompatible with \"response_format\"",
        leaves: { text: undefined, tool_choice: "required" }
      },
      messages: {
        has: (body) => at(body, "output_config.format") !== undefined,
        message: "You cannot specify response format and function call at the same time",
        leaves: { output_config: undefined, "tool_choice.type": "any" }
      },
      generate: {
        has: (body) => at(body, "generationConfig.responseMimeType") !== undefined,
        message: "Function calling with a response mime type: 'application/json' is unsupported",
        leaves: { "generationConfig.responseMimeType": undefined, "toolConfig.functionCallingConfig.mode": "ANY" }
      }
    }
  }
]

const facts = { max_output_tokens: 4_096, efforts: ["low", "medium"] }
const takesAll: NeverGets = { why: "it takes all", absent: [] }

/** What is known of a model before it is asked. */
const knownRow: Row = {
  name: "a limit and an effort",
  asks: {
    chat: { ...limits.chat, ...xhigh.chat },
    responses: { ...limits.responses, ...xhigh.responses },
    messages: { ...xhigh.messages, ...limits.messages },
    generate: { generationConfig: { maxOutputTokens: 32_000, thinkingConfig: { thinkingLevel: "HIGH" } } }
  },
  ignored: (style) =>
    ({
      chat: "max_completion_tokens,reasoning_effort",
      responses: "max_output_tokens,reasoning.effort",
      messages: "max_tokens,output_config.effort",
      generate: "generationConfig.maxOutputTokens,generationConfig.thinkingConfig.thinkingLevel"
    })[style],
  entry: {
    chat: facts,
    responses: facts,
    messages: { ...facts, thinking: "effort" },
    generate: { ...facts, thinking: "effort" }
  },
  servers: { chat: takesAll, responses: takesAll, messages: takesAll, generate: takesAll }
}

/** The limit and the effort in what a server gets. */
const knownOf: OfEach<(body: Unknown) => ReadonlyArray<unknown>> = {
  chat: (body) => [limitOf(body), body["reasoning_effort"]],
  responses: (body) => [body["max_output_tokens"], at(body, "reasoning.effort")],
  messages: (body) => [body["max_tokens"], at(body, "output_config.effort")],
  generate: (body) => [
    at(body, "generationConfig.maxOutputTokens"),
    String(at(body, `${thinkingConfig}.thinkingLevel`)).toLowerCase()
  ]
}

const ways = ["whole", "streamed"] as const
type Way = typeof ways[number]
const other: Readonly<Record<Way, Way>> = { whole: "streamed", streamed: "whole" }

/** A client of a style before a server of a contract, each with a model of its own. */
interface Pair {
  readonly row: Row
  readonly server: StyleName
  readonly style: StyleName
  readonly way: Way
  readonly model: string
}

const pairsWith = (row: Row, index: number): ReadonlyArray<Pair> =>
  styleNames.flatMap((server) =>
    styleNames.flatMap((style) =>
      ways.map((way) => ({ row, server, style, way, model: `${server}-${index}-${style}-${way}` }))
    )
  )

/** What becomes of a field in a pair. */
type Kind = "repaired" | "refused" | "unwritten" | "unread" | "own"

const kindOf = ({ row: { asks, repairsOwn = [], servers }, server, style }: Pair): Kind => {
  if (cannotWrite(asks[style])) return "unwritten"
  if (neverGets(servers[server])) return style === server ? "own" : "unread"
  return style === server && !repairsOwn.includes(server) ? "refused" : "repaired"
}

/** Why a pair cannot meet its row. */
const whyOf = ({ row: { asks, servers }, server, style }: Pair): string =>
  [asks[style], servers[server]].flatMap((each) => "why" in each ? [`, as ${String(each["why"])}`] : [])[0] ?? ""

const titled = (pair: Pair) =>
  [`${pair.row.name}, ${pair.style} to ${pair.server}, ${pair.way}${whyOf(pair)}`, pair] as const

const pairs = rows.flatMap(pairsWith)
const pairsOf = (kind: Kind) => pairs.filter((pair) => kindOf(pair) === kind).map(titled)
const knownPairs = pairsWith(knownRow, rows.length)

const fieldsOf = ({ row: { asks }, style }: Pair): Fields => {
  const asked = asks[style]
  return cannotWrite(asked) ? asked.writes : asked
}

const refusingOf = ({ row: { servers }, server }: Pair): Refusing | undefined => {
  const refusing = servers[server]
  return neverGets(refusing) ? undefined : refusing
}

const absentOf = ({ row: { servers }, server }: Pair): ReadonlyArray<string> => {
  const never = servers[server]
  return neverGets(never) ? never.absent : []
}

/** The model that a server is asked for, by its own path or body. */
const askedModel = ({ path }: Received, body: Unknown): string =>
  typeof body["model"] === "string" ? body["model"] : decodeURIComponent(/models\/([^:]+):/.exec(path)?.[1] ?? "")

const errors: OfEach<(refusing: Refusing) => object> = {
  chat: ({ message, param }) => ({
    error: { message, type: "invalid_request_error", param: param ?? null, code: null }
  }),
  responses: ({ message, param }) => ({
    error: { message, type: "invalid_request_error", param: param ?? null, code: null }
  }),
  messages: ({ message }) => ({ type: "error", error: { type: "invalid_request_error", message } }),
  generate: ({ message, status = 400 }) => ({ error: { code: status, message, status: "INVALID_ARGUMENT" } })
}

const hello: ReadonlyArray<Block> = [{ _tag: "Text", text: "Hello" }]

/** The texts of a streamed event, or of a whole reply. */
const texts: OfEach<(value: Unknown) => unknown> = {
  chat: (value) => at(value, "choices.0.delta.content") ?? at(value, "choices.0.message.content"),
  responses: (value) =>
    value["type"] === "response.output_text.delta"
      ? value["delta"]
      : (value["output"] as ReadonlyArray<Unknown> | undefined)?.map((item) => at(item, "content.0.text") ?? "").join(
        ""
      ),
  messages: (value) =>
    at(value, "delta.text") ??
      (value["content"] as ReadonlyArray<Unknown> | undefined)?.map((block) => block["text"] ?? "").join(""),
  generate: (value) =>
    (at(value, "candidates.0.content.parts") as ReadonlyArray<Unknown> | undefined)?.map((part) => part["text"] ?? "")
      .join("")
}

const textOf = (style: StyleName, way: Way, body: string): string =>
  (way === "whole" ? [body] : body.split("\n").flatMap((line) => line.startsWith("data: {") ? [line.slice(6)] : []))
    .map((each) => texts[style](JSON.parse(each) as Unknown) ?? "")
    .join("")

describe("what a server refuses of what the gateway wrote", () => {
  const scope = Scope.makeUnsafe()
  let stand: Stand

  const upstreamOf = (server: StyleName) => ({
    driver: drivers[server].name,
    base_url: `http://${server}.test/v1`,
    models: Object.fromEntries(
      [...pairs, ...knownPairs].flatMap(({ model, row: { entry }, server: each }) =>
        each === server ? [[model, { model, ...entry?.[server] }] as const] : []
      )
    ),
    // Servers of the other contracts have no field for the name of a cache.
    ...(server === "chat" || server === "responses" ? { prompt_cache: { key: "prompt_cache_key" } } : {})
  })

  beforeAll(async () => {
    const [first, ...others] = styleNames
    stand = await Effect.runPromise(
      Effect.provideService(
        startStand({
          accounts: [{ token: "sk-a" }, ...others.map((server) => ({ upstream: server, token: `sk-${server}` }))],
          upstream: upstreamOf(first),
          upstreams: Object.fromEntries(others.map((server) => [server, upstreamOf(server)]))
        }),
        Scope.Scope,
        scope
      )
    )
  })
  afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))

  const ask = async (pair: Pair, way = pair.way) => {
    const { model, style } = pair
    const stream = way === "streamed"
    const { body, path } = plainRequests[style]
    const response = await stand.fetch(
      `http://gateway.test${path(stream).replace("upstream-chat", encodeURIComponent(model))}`,
      {
        method: "POST",
        headers: { authorization: `Bearer ${businessKey}`, "content-type": "application/json" },
        body: JSON.stringify({
          ...body(stream),
          ...(style === "generate" ? {} : { model }),
          ...(style === "messages" ? { max_tokens: 64 } : {}),
          ...fieldsOf(pair)
        })
      }
    )
    const record = await stand.fetch(`http://gateway.test/admin/requests/${response.headers.get("x-request-id")}`, {
      headers: { authorization: "Bearer test-admin-key" }
    })
    const { ignored } = await record.json() as { readonly ignored: ReadonlyArray<string> | undefined }
    return {
      status: response.status,
      ignored: response.headers.get("x-gateway-ignored"),
      record: ignored?.join(",") || null,
      body: await response.text()
    }
  }

  /** Makes a server answer what it does not refuse. */
  const serve = (pair: Pair) => {
    const { model, row: { reply = hello }, server } = pair
    const refusing = refusingOf(pair)
    stand.answer((received): Answer => {
      const body = JSON.parse(received.body) as Unknown
      assert.strictEqual(askedModel(received, body), model)
      const isStream = body["stream"] === true || received.path.includes("stream")
      return refusing?.has(body) === true
        ? json(refusing.status ?? 400, errors[server](refusing))
        : drivers[server].write(reply, reply === hello ? "stop" : "tool_calls", isStream)
    })
  }

  /** The bodies that a server has received. */
  const bodies = () => stand.received.map(({ body }) => JSON.parse(body) as Unknown)

  it.each(pairsOf("repaired"))("is repaired once, and then left out before sending: %s", async (_, pair) => {
    const { row: { ignored, text: said = "Hello" }, server, style, way: first } = pair
    const refusing = refusingOf(pair)!
    serve(pair)
    for (const way of [first, other[first]]) {
      const got = await ask(pair, way)
      assert.strictEqual(got.status, 200, got.body)
      assert.strictEqual(textOf(style, way, got.body), said)
      const name = ignored(style, server)
      assert.deepStrictEqual([got.ignored, got.record], [name, name])
    }
    const [refused, ...others] = bodies()
    assert.isTrue(refusing.has(refused!))
    assert.lengthOf(others, 2)
    for (const body of others) {
      assert.isFalse(refusing.has(body))
      for (const [path, value] of Object.entries(refusing.leaves)) assert.deepStrictEqual(at(body, path), value, path)
    }
  })

  it.each(pairsOf("refused"))(
    "reaches the client of the server's contract as the server says it: %s",
    async (_, pair) => {
      const refusing = refusingOf(pair)!
      serve(pair)
      const got = await ask(pair)
      assert.strictEqual(got.status, refusing.status ?? 400, got.body)
      assert.include(got.body, JSON.stringify(refusing.message).slice(1, -1))
      assert.deepStrictEqual([got.ignored, got.record], [null, null])
      assert.lengthOf(stand.received, 1)
    }
  )

  it.each(pairsOf("unwritten"))("is nothing that the client can write: %s", async (_, pair) => {
    serve(pair)
    const got = await ask(pair)
    assert.strictEqual(got.status, 200, got.body)
    assert.lengthOf(stand.received, 1)
  })

  it.each(pairsOf("unread"))("is nothing that the server's contract has: %s", async (_, pair) => {
    serve(pair)
    const got = await ask(pair)
    assert.strictEqual(got.status, 200, got.body)
    assert.lengthOf(stand.received, 1)
    for (const path of absentOf(pair)) assert.isUndefined(at(bodies()[0], path), path)
  })

  it.each(pairsOf("own"))(
    "is a word that is strange to the client's own vendor, and goes there as written: %s",
    async (_, pair) => {
      serve(pair)
      const got = await ask(pair)
      assert.strictEqual(got.status, 200, got.body)
      assert.isNull(got.ignored)
      assert.lengthOf(stand.received, 1)
    }
  )

  it.each(knownPairs.map(titled))("is within what is known of the model before it is asked: %s", async (_, pair) => {
    const { server, style } = pair
    serve(pair)
    const got = await ask(pair)
    assert.strictEqual(got.status, 200, got.body)
    assert.lengthOf(stand.received, 1)
    const effort = style === "generate" ? "high" : "xhigh"
    // What a client writes in the server's own contract stays.
    const [name, leaves] = server === style
      ? [null, [32_000, effort]] as const
      : [pair.row.ignored(style, server), [4_096, "medium"]] as const
    assert.deepStrictEqual([got.ignored, got.record], [name, name])
    assert.deepStrictEqual(knownOf[server](bodies()[0]!), leaves)
  })
})
