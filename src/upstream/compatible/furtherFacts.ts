/**
 * Asks LM Studio, llama.cpp and Ollama in their own APIs for what their lists of models leave out: the window that they give, and what a model
 * can do. A server is asked only where its list shows its kind.
 */
import * as Effect from "effect/Effect"
import { parseJson } from "../../contracts/shared/json.ts"
import { isRecord, type JsonRecord } from "../../domain/json.ts"
import { longestName, type ModelFacts } from "../../domain/modelFacts.ts"
import { listedName, type ServersModel } from "../../domain/routes.ts"
import { upstreamNamed } from "../../domain/upstreamNames.ts"
import { asTokens, asWords, entriesOf, knownFacts } from "../server/modelList.ts"
import type { ServerClient } from "../server/ServerClient.ts"
import type { AskMore } from "../server/serverLists.ts"

/** The time of all other questions of one list. */
const longestAnswers = "5 seconds"

/** Models of which Ollama is asked, and how many concurrently. */
const mostAsked = 64
const askedAtOnce = 4

type Facts = ReadonlyMap<string, ModelFacts>
type Call = (method: "GET" | "POST", path: string, body?: object) => Effect.Effect<unknown>

const fieldsOf = (value: unknown): JsonRecord => isRecord(value) ? value : {}
const listIn = (value: unknown): ReadonlyArray<JsonRecord> => Array.isArray(value) ? value.filter(isRecord) : []

const vision = (sees: unknown) =>
  typeof sees !== "boolean" ? undefined : sees ? ["text", "image"] as const : ["text"] as const

/** LM Studio: the window of the loaded instance, else the largest one. */
const lmStudio = (call: Call): Effect.Effect<Facts> =>
  Effect.map(call("GET", "/api/v1/models"), (body) => {
    const found = new Map<string, ModelFacts>()
    for (const entry of listIn(fieldsOf(body)["models"])) {
      const { capabilities, display_name, key, loaded_instances, max_context_length } = entry
      const able = fieldsOf(capabilities)
      const instances = listIn(loaded_instances)
      const windowOf = (instance: JsonRecord | undefined) =>
        asTokens(fieldsOf(instance?.["config"])["context_length"]) ?? asTokens(max_context_length)
      for (const [name, instance] of [[key, instances[0]], ...instances.map((each) => [each["id"], each])] as const) {
        const facts = knownFacts({
          context_window: windowOf(instance as JsonRecord | undefined),
          input: vision(able["vision"]),
          tools: typeof able["trained_for_tool_use"] === "boolean" ? able["trained_for_tool_use"] : undefined,
          display_name: asWords(display_name, longestName)
        })
        if (typeof name === "string" && facts !== undefined && !found.has(name)) found.set(name, facts)
      }
    }
    return found
  })

/** llama.cpp, which serves one model. */
const llamaCpp = (call: Call, models: ReadonlyArray<ServersModel>): Effect.Effect<Facts> =>
  Effect.map(call("GET", "/props"), (body) => {
    const { default_generation_settings, modalities } = fieldsOf(body)
    const { audio, vision } = fieldsOf(modalities)
    const facts = knownFacts({
      context_window: asTokens(fieldsOf(default_generation_settings)["n_ctx"]),
      input: typeof vision !== "boolean" || typeof audio !== "boolean"
        ? undefined
        : ["text", ...vision ? ["image"] as const : [], ...audio ? ["audio"] as const : []]
    })
    return new Map(facts === undefined || models.length !== 1 ? [] : [[listedName(models[0]!), facts]])
  })

/** Ollama: a loaded model's window, else the one that the model's file asks for. */
const ollama = (call: Call, models: ReadonlyArray<ServersModel>): Effect.Effect<Facts> =>
  Effect.gen(function*() {
    const loaded = new Map(
      listIn(fieldsOf(yield* call("GET", "/api/ps"))["models"]).map((entry) =>
        [entry["name"], asTokens(entry["context_length"])] as const
      )
    )
    const asked = yield* Effect.forEach(models.slice(0, mostAsked).map(listedName), (model) =>
      Effect.map(call("POST", "/api/show", { model }), (body): readonly [string, ModelFacts | undefined] => {
        const { capabilities, parameters } = fieldsOf(body)
        const able: ReadonlyArray<unknown> | undefined = Array.isArray(capabilities) ? capabilities : undefined
        const chosen = typeof parameters === "string" ? /^num_ctx\s+(\d+)\s*$/m.exec(parameters)?.[1] : undefined
        const facts = knownFacts({
          context_window: loaded.get(model) ?? (chosen === undefined ? undefined : asTokens(Number(chosen))),
          input: vision(able?.includes("vision")),
          efforts: able === undefined || able.includes("thinking") ? undefined : [],
          tools: able?.includes("tools")
        })
        return [model, facts]
      }), { concurrency: askedAtOnce })
    return new Map(asked.flatMap(([name, facts]) =>
      facts === undefined ? [] : [[name, facts]]
    ))
  })

/** The question for the owner that a list names. */
const questions: ReadonlyMap<unknown, (call: Call, models: ReadonlyArray<ServersModel>) => Effect.Effect<Facts>> =
  new Map([
    ["organization_owner", lmStudio],
    ["llamacpp", llamaCpp],
    ["library", ollama]
  ])

const withFacts = (models: ReadonlyArray<ServersModel>, found: Facts): ReadonlyArray<ServersModel> =>
  models.map((model) => {
    const facts = found.get(listedName(model))
    return facts === undefined || typeof model === "string" ? model : { ...model, facts: { ...model.facts, ...facts } }
  })

/** Adds what the server says beside its list. A failure is noted once, and leaves the list as it is. `client` calls at the server's root. */
export const askFurther = (client: ServerClient, upstream: string | undefined): AskMore => {
  let isNoted = false
  return (models, body, token) => {
    const [entry] = entriesOf(body) ?? []
    const ask = questions.get(fieldsOf(entry)["owned_by"])
    if (ask === undefined) return Effect.succeed(models)
    const call: Call = Effect.fnUntraced(
      function*(method, path, body) {
        const text = body === undefined ? undefined : JSON.stringify(body)
        const exchange = yield* client.ask(method, path, token, text)
        const answer = yield* client.readBody(exchange)
        if (!client.isAnswer(exchange)) return yield* yield* client.refusal("session", exchange, answer, token)
        return parseJson(answer)
      },
      Effect.scoped,
      Effect.catch((failure) => {
        if (isNoted) return Effect.undefined
        isNoted = true
        const reason = failure.message ?? failure.kind
        return Effect.as(
          Effect.logInfo(
            `upstream ${upstreamNamed(upstream)} says nothing about its models beside their names: ${reason}`
          ),
          undefined
        )
      })
    )
    return Effect.map(
      Effect.timeoutOption(ask(call, models), longestAnswers),
      (found) => found._tag === "Some" ? withFacts(models, found.value) : models
    )
  }
}
