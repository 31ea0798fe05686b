/** Requests of other endpoints: tokens that are counted, lists of models, responses that are kept or compacted, embeddings, what is relayed. */
import { citySchema } from "../../styles/support.ts"
import type { Answer } from "../../support/openaiServer.ts"
import { json } from "../../support/openaiServer.ts"
import * as responses from "../../support/responsesServer.ts"
import type { StyleName } from "../../support/styleClients.ts"
import type { Received } from "../stand.ts"
import { jsonRequest } from "./asked.ts"
import { parsed } from "./sentBack.ts"

export interface Further {
  readonly name: string
  /** `before` is the body of the exchange before it. */
  readonly request: (before: string) => Request
}

const keptAt = (before: string): string => `/v1/responses/${String(parsed(before)["id"])}`

const hi = [{ role: "user", content: "Hi" }]
const contents = [{ role: "user", parts: [{ text: "Hi" }] }]
const compaction = { model: "upstream-chat", input: [{ role: "user", content: "Hi" }] }

/** Of the styles that are for completions. */
export const further: { readonly [Style in StyleName]: ReadonlyArray<Further> } = {
  chat: [
    { name: "models", request: () => jsonRequest("/v1/models", undefined, { method: "GET" }) },
    {
      name: "completions",
      request: () => jsonRequest("/v1/completions", { model: "upstream-chat", prompt: "Hi", max_tokens: 5 })
    }
  ],
  responses: [
    {
      name: "tokens of the input",
      request: () => jsonRequest("/v1/responses/input_tokens", { model: "upstream-chat", input: "Hi" })
    },
    { name: "compaction", request: () => jsonRequest("/v1/responses/compact", compaction) },
    {
      name: "compaction at the end of the input",
      request: () =>
        jsonRequest("/v1/responses", {
          ...compaction,
          store: false,
          input: [...compaction.input, { type: "compaction_trigger" }]
        })
    },
    {
      name: "what is compacted goes on",
      request: (before) =>
        jsonRequest("/v1/responses", {
          ...compaction,
          store: false,
          input: [...parsed(before)["output"] as ReadonlyArray<unknown>, { role: "user", content: "On" }]
        })
    },
    {
      name: "a response that is kept",
      request: () => jsonRequest("/v1/responses", { model: "upstream-chat", input: "Hi" })
    },
    {
      name: "the kept one goes on",
      request: (before) =>
        jsonRequest("/v1/responses", {
          model: "upstream-chat",
          input: "On",
          previous_response_id: parsed(before)["id"]
        })
    },
    { name: "the kept one", request: (before) => jsonRequest(keptAt(before), undefined, { method: "GET" }) },
    {
      name: "the input of the kept one",
      request: (before) => jsonRequest(`${keptAt(before)}/input_items`, undefined, { method: "GET" })
    },
    { name: "no such response", request: () => jsonRequest("/v1/responses/resp_nobody", undefined, { method: "GET" }) }
  ],
  messages: [
    {
      name: "tokens",
      request: () =>
        jsonRequest("/v1/messages/count_tokens", {
          model: "upstream-chat",
          messages: hi,
          tools: [{ name: "f", input_schema: citySchema }]
        })
    },
    {
      name: "models",
      request: () =>
        jsonRequest("/v1/models", undefined, { method: "GET", headers: { "anthropic-version": "2023-06-01" } })
    },
    {
      name: "headers of the vendor",
      request: () =>
        jsonRequest("/v1/messages", { model: "upstream-chat", max_tokens: 9, messages: hi }, {
          headers: { "anthropic-beta": "a-2025-01-01,b-2025-01-01", "anthropic-version": "2023-06-01", "x-client": "c" }
        })
    }
  ],
  generate: [
    { name: "tokens", request: () => jsonRequest("/v1beta/models/upstream-chat:countTokens", { contents }) },
    {
      name: "tokens of a whole request",
      request: () =>
        jsonRequest("/v1beta/models/upstream-chat:countTokens", {
          generateContentRequest: {
            model: "models/upstream-chat",
            contents,
            systemInstruction: { parts: [{ text: "Be brief." }] }
          }
        })
    },
    { name: "models", request: () => jsonRequest("/v1beta/models", undefined, { method: "GET" }) },
    { name: "a model", request: () => jsonRequest("/v1beta/models/upstream-chat", undefined, { method: "GET" }) },
    {
      name: "a stream as a list",
      request: () => jsonRequest("/v1beta/models/upstream-chat:streamGenerateContent", { contents })
    }
  ]
}

const model = "upstream-chat"

/** Embeddings, in both contracts that have them. */
export const embeddings: ReadonlyArray<Further> = [
  { name: "float", request: () => jsonRequest("/v1/embeddings", { model, input: "Oslo", dimensions: 4 }) },
  {
    name: "base64",
    request: () =>
      jsonRequest("/v1/embeddings", { model, input: ["Oslo", "Rome"], dimensions: 4, encoding_format: "base64" })
  },
  {
    name: "fields of servers",
    request: () =>
      jsonRequest("/v1/embeddings", { model, input: ["Oslo"], dimensions: 4, user: "u", input_type: "query" })
  },
  { name: "tokens", request: () => jsonRequest("/v1/embeddings", { model, input: [[1, 2, 3]], dimensions: 4 }) },
  { name: "invalid", request: () => jsonRequest("/v1/embeddings", { model, input: "Oslo", dimensions: 0 }) },
  {
    name: "a content",
    request: () =>
      jsonRequest("/v1beta/models/upstream-chat:embedContent", {
        content: { parts: [{ text: "Oslo" }] },
        taskType: "RETRIEVAL_QUERY",
        outputDimensionality: 4
      })
  },
  {
    name: "several contents",
    request: () =>
      jsonRequest("/v1beta/models/upstream-chat:batchEmbedContents", {
        requests: ["Oslo", "Rome"].map((text) => ({
          model: "models/upstream-chat",
          content: { parts: [{ text }] },
          outputDimensionality: 4
        }))
      })
  }
]

const vector = (index: number) => [0.5, -0.5, 0.25, index]

/** What a server answers at an endpoint that is not for completions; `undefined` at those. */
export const answerElsewhere = ({ body, method, path }: Received): Answer | undefined => {
  if (method === "GET") {
    return path.includes("/v1beta/")
      ? json(200, { models: [{ name: "models/server-chat", supportedGenerationMethods: ["generateContent"] }] })
      : json(200, {
        object: "list",
        data: [{ id: "server-chat", object: "model", created: 1, owned_by: "s" }],
        has_more: false
      })
  }
  if (/count_tokens|input_tokens/.test(path)) return json(200, { input_tokens: 42, object: "response.input_tokens" })
  if (path.includes(":countTokens")) return json(200, { totalTokens: 42 })
  if (path.endsWith("/compact")) {
    const output = [{ id: "cmp_1", type: "compaction", encrypted_content: "c2VhbGVk" }]
    return json(200, { id: "resp_1", object: "response.compaction", created_at: 1, output, usage: responses.usage })
  }
  if (body.includes("compaction_trigger")) {
    const compacted = responses.responseOf([{ id: "cmp_1", type: "compaction", encrypted_content: "c2VhbGVk" }])
    return body.includes("\"stream\":true") ? responses.streamed(compacted) : responses.whole(compacted)
  }
  if (path.endsWith("/embeddings")) {
    const { encoding_format, input } = JSON.parse(body) as {
      readonly input: unknown
      readonly encoding_format?: string
    }
    const count = Array.isArray(input) && Array.isArray(input[0]) || typeof input === "string"
      ? 1
      : (input as Array<unknown>).length
    const inBase64 = (numbers: ReadonlyArray<number>) =>
      Buffer.from(Float32Array.from(numbers).buffer).toString("base64")
    return json(200, {
      object: "list",
      model: "m",
      data: Array.from({ length: count }, (_, index) => ({
        object: "embedding",
        index,
        embedding: encoding_format === "base64" ? inBase64(vector(index)) : vector(index)
      })),
      usage: { prompt_tokens: 3, total_tokens: 3 }
    })
  }
  if (path.includes(":embedContent")) return json(200, { embedding: { values: vector(0) } })
  if (path.includes(":batchEmbedContents")) {
    const { requests } = JSON.parse(body) as { readonly requests: ReadonlyArray<unknown> }
    return json(200, { embeddings: requests.map((_, index) => ({ values: vector(index) })) })
  }
  if (path.endsWith("/v1/completions")) {
    return json(200, {
      id: "cmpl-1",
      object: "text_completion",
      created: 1,
      model: "m",
      choices: [{ index: 0, text: "Hello", finish_reason: "stop", logprobs: null }],
      usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 }
    })
  }
  return undefined
}
