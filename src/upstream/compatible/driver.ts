/**
 * The drivers `openai` and `responses`: any server with an OpenAI-compatible `POST {base_url}/chat/completions` or `/responses`. Their
 * addresses, keys, embeddings, relayed endpoints and lists of models are the same.
 */
import * as Effect from "effect/Effect"
import { chat } from "../../contracts/chat/contract.ts"
import { readEmbeddings } from "../../contracts/chat/readEmbeddings.ts"
import { passedFields, passesField } from "../../contracts/chat/writeRequest.ts"
import { responses } from "../../contracts/responses/contract.ts"
import { parseJson } from "../../contracts/shared/json.ts"
import { onPath } from "../../domain/serverAddress.ts"
import type { Exchanges } from "../Exchange.ts"
import { serveChat } from "../openai/driver.ts"
import { serveResponses } from "../responses/driver.ts"
import { listedModels, type TestedSchemas } from "../server/modelList.ts"
import { makeServerClient } from "../server/ServerClient.ts"
import { embedBy, namesOf, serverDriver } from "../server/serverDriver.ts"
import { type ServerOptions, settingsOf } from "../server/ServerOptions.ts"
import type { Driver, EmbeddingsRequest, RelayedRequest, ServedContract } from "../Upstream.ts"
import { choosingDriver } from "./choosingDriver.ts"
import { ContractChoice, type Serving } from "./ContractChoice.ts"
import { askFurther } from "./furtherFacts.ts"

/** Each contract as it is spoken to a server. */
const spoken = {
  openai: { serve: serveChat, contract: chat },
  responses: { serve: serveResponses, contract: responses }
}

/** What tested servers do with schemas in each contract. */
const testedSchemas: Readonly<Record<Serving, TestedSchemas>> = {
  openai: new Map([["vllm", "binding"], ["llamacpp", "binding"], ["library", "binding"]]),
  responses: new Map([["vllm", "binding"], ["llamacpp", "advisory"], ["library", "binding"]])
}

/** Makes the driver of a server. `usual`: the contract of completions unless the settings name another one. */
const makeDriver = (exchanges: Exchanges["Service"], options: ServerOptions, usual: Serving): Driver => {
  const settings = settingsOf(options)
  const choice = new ContractChoice(settings, usual)
  const nameOf = namesOf(settings)
  const isPassed = passesField(settings.fields)
  const clientOf = (name: Serving, baseUrl = settings.baseUrl) =>
    makeServerClient(exchanges, { ...settings, baseUrl }, {
      contract: spoken[name].contract,
      headers: {},
      credential: (key) => ({ authorization: `Bearer ${key}` }),
      versionPrefix: "/v1"
    })
  const client = clientOf(choice.usual)
  // What servers tell in their own APIs is beside the compatible one.
  const rootClient = clientOf("openai", onPath(settings.baseUrl, (path) => path.replace(/\/v1$/, "")))
  // A request of a server with both contracts may use the one that binds less.
  const tested = testedSchemas[choice.only ?? "responses"]
  const list = {
    path: "/models",
    query: "",
    read: (body: unknown) => listedModels(body, tested),
    ask: askFurther(rootClient, settings.upstream)
  }

  const embed = (request: EmbeddingsRequest) => {
    const { dimensions, fields = {}, inputs } = request
    const model = nameOf(request.model)
    const body = JSON.stringify({
      ...passedFields(fields, isPassed),
      model: model.name,
      input: inputs,
      encoding_format: "float",
      ...(dimensions === undefined ? {} : { dimensions })
    })
    return embedBy(client, request, { model, path: "/embeddings", body, read: readEmbeddings })
  }

  const relay = (request: RelayedRequest) =>
    Effect.flatMap(Effect.scope, (scope) =>
      request.budget.takeCall()
        ? client.relay(request, nameOf(request.model), scope)
        : Effect.fail(request.budget.noCallLeft("completion")))

  const driverOf = (served: ServedContract): Driver =>
    serverDriver(client, settings, list, {
      name: usual,
      ...served,
      capabilities: { ...served.capabilities, embed, relay }
    })
  const serve = (contract: Serving) =>
    driverOf(spoken[contract].serve(contract === choice.usual ? client : clientOf(contract), settings))
  if (choice.only !== undefined) return serve(choice.only)

  return choosingDriver(
    choice,
    { openai: serve("openai"), responses: serve("responses") },
    (token) =>
      Effect.scoped(
        Effect.flatMap(client.ask("GET", list.path, token), (exchange) =>
          Effect.map(client.readBody(exchange), (text) =>
            client.isAnswer(exchange) ? parseJson(text) : undefined))
      )
  )
}

/** Makes the driver `openai`: an OpenAI-compatible server, asked by chat completions. */
export const makeOpenAiDriver = (exchanges: Exchanges["Service"], options: ServerOptions): Driver =>
  makeDriver(exchanges, options, "openai")

/** Makes the driver `responses`: an OpenAI-compatible server, asked by the Responses API. */
export const makeResponsesDriver = (exchanges: Exchanges["Service"], options: ServerOptions): Driver =>
  makeDriver(exchanges, options, "responses")
