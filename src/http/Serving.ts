/**
 * What the styles serve beside completions: models by their names, and how long they wait for clients. An app that gives nothing of it serves
 * every name. `gatewayServing.ts` has the gateway's own.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as HttpServerRequest from "effect/http/HttpServerRequest"
import type { AllowedRoutes } from "../domain/allowedRoutes.ts"
import type { GatewayError } from "../domain/GatewayError.ts"
import type { ModelFacts } from "../domain/modelFacts.ts"
import { normalizeModelName } from "../domain/models.ts"
import { type NameTable, noNames } from "../domain/nameTable.ts"
import { routeNotFound } from "../domain/routeNotFound.ts"
import {
  makeRouteTable,
  type NameFamily,
  plainTarget,
  resolveRoute,
  type Route,
  type RouteTable,
  routeTo
} from "../domain/routes.ts"

/** What a caller sees of the models. */
export interface Visible {
  /** `undefined` for all models. */
  readonly allowed: AllowedRoutes | undefined
  /** Whether the caller has shown a valid key, which may see prices. */
  readonly hasKey: boolean
}

/** A caller that sees all models without their prices. */
export const everything: Visible = { allowed: undefined, hasKey: false }

/** The models that have names. */
export interface ServedModels {
  readonly route_table: RouteTable
  readonly model_facts: NameTable<ModelFacts>
}

/** What the styles serve beside completions. */
export interface Serving {
  /** The models of lists: the same object while they stay the same. */
  readonly models: () => ServedModels
  /** What callers of lists see. Fails with the refusal to send. */
  readonly visible: Effect.Effect<Visible, GatewayError, HttpServerRequest.HttpServerRequest>
  /** The model of a name, or the error for a name of none. `key`: the caller's key. */
  readonly find: (requested: string, family: NameFamily, key: string) => Route | GatewayError
  /** Looks for models that are new, because a name is unknown. */
  readonly readAgain: Effect.Effect<void>
  /** Milliseconds for which a client may leave its reply unread. */
  readonly patience: () => number
  /** The client's address, by which WebSocket connections of callers without a key are counted; `undefined` where none are opened. */
  readonly socketAddress: (source: HttpServerRequest.HttpServerRequest) => string | undefined
  /** The Responses API accepts both `input` and `messages`. */
  readonly wideInput: () => boolean
}

const oneModel = (id: string): Route => {
  const model = { id, reasoning: "auto", search: false } as const
  return routeTo(id, [{ ...plainTarget, upstream: "app", model, enabled: true }], "listed")
}

const noRoutes = makeRouteTable({
  upstreams: [],
  unnamed: "app",
  routes: [],
  aliases: new Map(),
  mapping: { fast: "", slow: "" },
  families: false,
  mapped: undefined,
  listed: undefined
})

const inNoList: ServedModels = { route_table: noRoutes, model_facts: noNames }

const anyModel: Serving = {
  models: () => inNoList,
  visible: Effect.succeed(everything),
  find: oneModel,
  readAgain: Effect.void,
  patience: () => 120_000,
  socketAddress: () => undefined,
  wideInput: () => true
}

/** What the styles serve; by default every name, and lists are empty. A client may leave its reply unread for two minutes. */
export const CurrentServing = Context.Reference<Serving>("model-gateway/http/Serving", {
  defaultValue: () => anyModel
})

/** Serves models with the given names alone, and lists them. */
export const servingModels = (ids: ReadonlyArray<string>): Serving => {
  const routes = new Map(ids.map((id) => [normalizeModelName(id), oneModel(id)]))
  const models: ServedModels = { route_table: { ...noRoutes, routes }, model_facts: noNames }
  return {
    ...anyModel,
    models: () => models,
    find: (requested, family) =>
      resolveRoute(models.route_table, family, requested) ?? routeNotFound(models.route_table, undefined, requested)
  }
}
