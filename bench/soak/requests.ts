/**
 * Makes the HTTP request of a plan in its style.
 */
import type { Plan, Style } from "./plan.ts"

/** A request to the gateway. */
export interface HttpRequest {
  readonly method: "GET" | "POST"
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

const parameters = {
  type: "object",
  properties: { city: { type: "string" }, days: { type: "integer" } },
  required: ["city", "days"]
}

const tool = { name: "weather", description: "The weather of the next days", parameters }

const usesTools = ({ kind }: Plan): boolean => kind === "tools" || kind === "violation"

const forced = ({ kind }: Plan): boolean => kind === "violation"

type Body = Readonly<Record<string, unknown>>

/** The fields of a completion in each style, without those that select streaming. */
const bodies: Readonly<Record<Style, (plan: Plan) => Body>> = {
  chat: (plan) => ({
    model: plan.model,
    messages: [{ role: "user", content: plan.prompt }],
    ...(usesTools(plan) ? { tools: [{ type: "function", function: tool }] } : {}),
    ...(forced(plan) ? { tool_choice: "required" } : {}),
    ...(plan.kind === "structured"
      ? { response_format: { type: "json_schema", json_schema: { name: "reply", schema: parameters } } }
      : {})
  }),
  responses: (plan) => ({
    model: plan.model,
    input: plan.prompt,
    ...(usesTools(plan) ? { tools: [{ type: "function", strict: null, ...tool }] } : {}),
    ...(forced(plan) ? { tool_choice: "required" } : {}),
    ...(plan.kind === "stored" ? {} : { store: false }),
    ...(plan.kind === "structured"
      ? { text: { format: { type: "json_schema", name: "reply", schema: parameters } } }
      : {})
  }),
  messages: (plan) => ({
    model: plan.model,
    max_tokens: 100_000,
    messages: [{ role: "user", content: [{ type: "text", text: plan.prompt }] }],
    ...(usesTools(plan)
      ? { tools: [{ name: tool.name, description: tool.description, input_schema: parameters }] }
      : {}),
    ...(forced(plan) ? { tool_choice: { type: "any" } } : {}),
    ...(plan.kind === "structured"
      ? { output_config: { format: { type: "json_schema", schema: parameters } } }
      : {})
  }),
  generate: (plan) => ({
    contents: [{ role: "user", parts: [{ text: plan.prompt }] }],
    ...(usesTools(plan)
      ? {
        tools: [{
          functionDeclarations: [{
            name: tool.name,
            description: tool.description,
            parametersJsonSchema: parameters
          }]
        }]
      }
      : {}),
    ...(forced(plan) ? { toolConfig: { functionCallingConfig: { mode: "ANY" } } } : {}),
    ...(plan.kind === "structured"
      ? { generationConfig: { responseMimeType: "application/json", responseJsonSchema: parameters } }
      : {})
  })
}

const paths: Readonly<Record<Exclude<Style, "generate">, ReadonlyArray<string>>> = {
  chat: ["/v1/chat/completions"],
  responses: ["/v1/responses"],
  messages: ["/v1/messages", "/messages", "/msgcompat/v1/messages"]
}

const generatePath = ({ model, variant }: Plan, method: string): string =>
  `/${variant % 3 === 0 ? "v1" : "v1beta"}/models/${encodeURIComponent(model)}:${method}`

const variantOf = <A>({ variant }: Plan, from: ReadonlyArray<A>): A => from[variant % from.length]!

const credentialHeader: Readonly<Record<Style, (key: string) => Readonly<Record<string, string>>>> = {
  chat: (key) => ({ authorization: `Bearer ${key}` }),
  responses: (key) => ({ authorization: `Bearer ${key}` }),
  messages: (key) => ({ "x-api-key": key }),
  generate: (key) => ({ "x-gen-api-key": key })
}

/** The headers of a style's requests. */
export const headersOf = (style: Style, key: string, target?: string): Readonly<Record<string, string>> => ({
  "content-type": "application/json",
  ...credentialHeader[style](key),
  ...(target === undefined ? {} : { "x-gateway-target-account": target })
})

/** An invalid body, and its error. */
interface BadBody {
  readonly about: string
  readonly body: (plan: Plan) => string
  readonly code: "invalid_request" | "model_not_found" | "authentication_failed"
  readonly key?: string
}

const changed = (change: (body: Body) => Body) => (plan: Plan): string =>
  JSON.stringify(change(bodies[plan.style](plan)))

const turnsOf: Readonly<Record<Style, string>> = {
  chat: "messages",
  responses: "input",
  messages: "messages",
  generate: "contents"
}

const badBodies: ReadonlyArray<BadBody> = [
  { about: "no JSON", body: () => "{\"model\":", code: "invalid_request" },
  { about: "nothing", body: () => "", code: "invalid_request" },
  { about: "a list", body: () => "[]", code: "invalid_request" },
  { about: "too deep", body: () => "[".repeat(5000) + "]".repeat(5000), code: "invalid_request" },
  {
    about: "turns that are a number",
    body: (plan) => changed((body) => ({ ...body, [turnsOf[plan.style]]: 7 }))(plan),
    code: "invalid_request"
  },
  {
    about: "no turns",
    body: (plan) => changed((body) => ({ ...body, [turnsOf[plan.style]]: undefined }))(plan),
    code: "invalid_request"
  },
  {
    about: "tools that are a text",
    body: changed((body) => ({ ...body, tools: "weather" })),
    code: "invalid_request"
  },
  { about: "no credential", body: changed((body) => body), code: "authentication_failed", key: "" }
]

/** The fault of a request of kind `bad`. */
export const badBodyOf = (plan: Plan): BadBody => variantOf(plan, badBodies)

/** The request of a plan. */
export const requestOf = (plan: Plan, key: string, target?: string): HttpRequest => {
  const { kind, model, style, stream } = plan
  const bad = kind === "bad" ? badBodyOf(plan) : undefined
  const headers = bad?.key === "" ? { "content-type": "application/json" } : headersOf(style, key, target)
  const post = (path: string, body: string): HttpRequest => ({ method: "POST", path, headers, body })
  if (kind === "embeddings") {
    return post("/v1/embeddings", JSON.stringify({ model, input: [plan.prompt, "another text", plan.prompt] }))
  }
  const fields = bodies[style](plan)
  if (kind === "counting") {
    return style === "generate"
      ? post(generatePath({ ...plan, variant: 1 }, "countTokens"), JSON.stringify(fields))
      : post(`${variantOf(plan, paths.messages)}/count_tokens`, JSON.stringify(fields))
  }
  if (style === "generate") {
    const path = generatePath(plan, stream ? "streamGenerateContent?alt=sse" : "generateContent")
    return post(path, bad?.body(plan) ?? JSON.stringify(fields))
  }
  return post(
    variantOf(plan, paths[style]),
    bad?.body(plan) ?? JSON.stringify({ ...fields, stream })
  )
}
