/**
 * The admin API as the page calls it: the same contract that the server is made of, at the place the page came from.
 */
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as HttpApi from "effect/http-api/HttpApi"
import type * as HttpApiClient from "effect/http-api/HttpApiClient"
import type * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import type * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as Layer from "effect/Layer"
import * as AtomHttpApi from "effect/reactivity/AtomHttpApi"
import * as AtomRegistry from "effect/reactivity/AtomRegistry"
import type * as Reactivity from "effect/reactivity/Reactivity"
import { AdminApi } from "../../api.ts"
import { registry } from "./registry.ts"

/** The gateway's address, whatever path it is mounted below: the folder above the page's. No slash at its end. */
export const base = new URL("../", document.baseURI).href.replace(/\/$/, "")

/** A path of the gateway as an address. */
export const at = (path: string): string => base + path

/** A JWT kept in memory, where the browser sends no cookie for the page; else `undefined`. */
let bearer: string | undefined

/** Sets the JWT that calls carry, or leaves it to the cookie. */
export const setBearer = (token: string | undefined): void => {
  bearer = token
}

/** The headers that say who calls; none where a cookie does. */
export const credentials = (): Record<string, string> =>
  bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }

const listeners = new Set<() => void>()

/** Calls `listener` when the gateway no longer knows who calls. */
export const onSignedOut = (listener: () => void): void => void listeners.add(listener)

/** Tells that a call was refused for its credential. */
export const signedOut = (): void => listeners.forEach((listener) => listener())

/** Atoms for each endpoint of the admin API. */
export class Admin extends AtomHttpApi.Service<Admin>()("console/Admin", {
  api: AdminApi,
  httpClient: Layer.merge(
    FetchHttpClient.layer,
    // Nobody collects traces of the page.
    Layer.succeed(HttpClient.TracerDisabledWhen, () => true)
  ),
  baseUrl: base,
  transformClient: (client) =>
    client.pipe(
      HttpClient.mapRequest((request) =>
        bearer === undefined ? request : HttpClientRequest.bearerToken(request, bearer)
      ),
      HttpClient.tap((response) => response.status === 401 ? Effect.sync(signedOut) : Effect.void)
    )
}) {}

/** The client itself, for changes. */
export type AdminClient = HttpApiClient.ForApi<typeof AdminApi>

type GroupOf<Api> = Api extends HttpApi.HttpApi<infer _Id, infer Groups> ? Groups : never
type Groups = GroupOf<typeof AdminApi>

/** What an endpoint answers. */
export type Reply<
  G extends HttpApiGroup.Identifier<Groups>,
  E extends HttpApiEndpoint.Identifier<HttpApiGroup.Endpoints<HttpApiGroup.WithIdentifier<Groups, G>>>
> = HttpApiClient.SuccessType<
  Extract<
    HttpApiEndpoint.WithIdentifier<HttpApiGroup.Endpoints<HttpApiGroup.WithIdentifier<Groups, G>>, E>,
    HttpApiEndpoint.ConstraintRequest
  >["~Success"]
>

type Services = Admin | Reactivity.Reactivity

/** Runs an effect with the client and all that comes with it. */
export const withServices = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, Exclude<R, Services>> =>
  Effect.flatMap(
    Effect.provideService(AtomRegistry.getResult(registry, Admin.runtime), AtomRegistry.AtomRegistry, registry),
    // Every runtime of atoms has `Reactivity`, though its type does not say so.
    (services) => Effect.provideContext(effect, services as Context.Context<Services>)
  )
