/**
 * What the drivers of servers have in common: the members that follow from their settings and lists of models, vectors, and counts of tokens.
 */
import * as Effect from "effect/Effect"
import { asCount, parseJson } from "../../contracts/shared/json.ts"
import type { EmbeddingsReply } from "../../domain/Embeddings.ts"
import { isRecord } from "../../domain/json.ts"
import type { ServersModel } from "../../domain/routes.ts"
import { UpstreamFailure } from "../../domain/UpstreamFailure.ts"
import type { UpstreamModel } from "../../domain/UpstreamModel.ts"
import type { CountRequest, Driver, EmbeddingsRequest } from "../Upstream.ts"
import { longestBody, type RequestedModel, slowestBody } from "./serverAnswers.ts"
import { longestVectors, mostVectorValues, type ServerClient } from "./ServerClient.ts"
import type { AskMore } from "./serverLists.ts"
import type { ServerSettings } from "./ServerOptions.ts"

/** Finds the server's names of models. Other ids are sent unchanged. */
export const namesOf = ({ models }: Pick<ServerSettings, "models">) => {
  const names = new Map(models.map(({ id, model }) => [id, model]))
  return ({ id }: Pick<UpstreamModel, "id">): RequestedModel => ({ id, name: names.get(id) ?? id })
}

/** The list of a server's models. */
export interface ModelList {
  readonly path: string
  /** The query that asks for all of it. */
  readonly query: string
  /** Finds the models in its JSON. */
  readonly read: (body: unknown) => ReadonlyArray<ServersModel> | undefined
  /** Asks for what the list leaves out, in bounded time. */
  readonly ask: AskMore | undefined
}

/** Makes the driver of a server from what is its own. */
export const serverDriver = (
  client: ServerClient,
  settings: Pick<ServerSettings, "furtherModels" | "refusals" | "server">,
  { ask, path, query, read }: ModelList,
  own: Pick<Driver, "name" | "contract" | "sends" | "complete" | "capabilities">
): Driver => {
  const { furtherModels, refusals, server } = settings
  const lacks = server?.lacks ?? []
  return {
    ...own,
    capabilities: {
      ...own.capabilities,
      refusals,
      listModels: client.listModels(path + query, read, ask),
      ...Object.fromEntries(lacks.map((name) => [name, undefined]))
    },
    // Most self-hosted servers need no key; others refuse by themselves.
    isAnonymous: true,
    models: furtherModels,
    secrets: client.secrets,
    // A server without a list has nothing that costs nothing to ask for.
    verify: lacks.includes("listModels") ? () => Effect.void : client.verify(path)
  }
}

/** A call for vectors. */
interface EmbeddingsCall {
  readonly model: RequestedModel
  readonly path: string
  readonly body: string
  /** Reads the vectors of so many inputs. */
  readonly read: (body: unknown, inputs: number) => EmbeddingsReply | undefined
}

/** Makes embeddings in one call. */
export const embedBy = Effect.fnUntraced(function*(
  client: ServerClient,
  request: EmbeddingsRequest,
  { body, model, path, read }: EmbeddingsCall
) {
  const { inputs, token } = request
  const exchange = yield* client.post(path, body, request, undefined)
  const isRefusal = !client.isAnswer(exchange)
  const text = yield* exchange.text(
    isRefusal ? longestBody : longestVectors,
    isRefusal ? slowestBody : client.limits.firstByte
  )
  const parsed = isRefusal ? undefined : parseJson(text, mostVectorValues)
  const reply = read(parsed, inputs.length)
  if (reply !== undefined) return reply
  if (isRefusal || (isRecord(parsed) && client.isError(parsed))) {
    return yield* yield* client.refusal("completion", exchange, text, token, model)
  }
  return yield* new UpstreamFailure({
    phase: "completion",
    kind: "malformed",
    message: "it answered with no embeddings"
  })
}, Effect.scoped)

/** Makes embeddings in as many calls as the contract's batches take, one after another. Of several, the tokens are added up. */
export const inBatches = <E, R>(
  most: number | undefined,
  embed: (request: EmbeddingsRequest) => Effect.Effect<EmbeddingsReply, E, R>
) =>
(request: EmbeddingsRequest): Effect.Effect<EmbeddingsReply, E, R> => {
  const { inputs, own } = request
  if (most === undefined || inputs.length <= most) return embed(request)
  const starts = Array.from({ length: Math.ceil(inputs.length / most) }, (_, i) => i * most)
  return Effect.map(
    Effect.forEach(starts, (from) =>
      embed({
        ...request,
        inputs: inputs.slice(from, from + most),
        own: own && { ...own, fields: own.fields.slice(from, from + most) }
      })),
    (replies) => ({
      vectors: replies.flatMap(({ vectors }) => vectors),
      tokens: replies.reduce<number | undefined>(
        (sum, { tokens }) => sum === undefined || tokens === undefined ? undefined : sum + tokens,
        0
      )
    })
  )
}

/** The failure of a server that counts no tokens. */
export const noCounts = new UpstreamFailure({ phase: "completion", kind: "refused", status: 501 })

/** A call for a count of tokens. */
interface CountCall {
  readonly model: RequestedModel
  readonly path: string
  readonly body: string
  readonly headers: { readonly [name: string]: string } | undefined
  /** The field of the answer that has the count. */
  readonly field: string
}

/** Counts the tokens of a conversation in one call. */
export const countBy = Effect.fnUntraced(function*(
  client: ServerClient,
  request: CountRequest,
  { body, field, headers, model, path }: CountCall
) {
  const said = { path, body, headers }
  const asked = client.count?.(said) ?? said
  const exchange = yield* client.post(asked.path, asked.body, { ...request, budget: undefined }, asked.headers)
  const text = yield* client.readBody(exchange)
  const parsed = client.isAnswer(exchange) ? parseJson(text) : undefined
  const count = asCount(isRecord(parsed) ? parsed[field] : undefined)
  return count ?? (yield* yield* client.refusal("completion", exchange, text, request.token, model))
}, Effect.scoped)
