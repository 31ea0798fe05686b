/**
 * The client of the admin API: made from the server's own contract, at the address that the page came from.
 */
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as HttpApi from "effect/http-api/HttpApi"
import * as HttpApiClient from "effect/http-api/HttpApiClient"
import type * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import type * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as Layer from "effect/Layer"
import * as Atom from "effect/reactivity/Atom"
import * as AtomRegistry from "effect/reactivity/AtomRegistry"
import type * as Reactivity from "effect/reactivity/Reactivity"
import { type AdminApi, AdminMinutesGroup, AdminRequestsGroup, AdminUsageGroup } from "../../api.ts"
import { TooLate } from "./failure.ts"
import { registry } from "./registry.ts"

/** The gateway's address: the folder above the page's, wherever the gateway is mounted. Without a slash at its end. */
export const base = new URL("../", document.baseURI).href.replace(/\/$/, "")

/** The address of a path of the gateway. */
export const at = (path: string): string => base + path

let bearer: string | undefined

/** Sets the JWT that calls carry when the browser sends no cookie for the page; `undefined` leaves it to the cookie. */
export const setBearer = (token: string | undefined): void => {
  bearer = token
}

/** The headers with the credential; empty when the credential is a cookie. */
export const credentials = (): Record<string, string> =>
  bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }

/** The longest time that a read may take, in milliseconds: a proxy may swallow a request for good. */
export const longestRead = 15_000

/** `fetch` for calls of the gateway: what is read ends after the longest time, with its whole body. */
export const fetchInTime: typeof fetch = (input, init = {}) => {
  if ((init.method ?? "GET") !== "GET") return fetch(input, init)
  const late = new AbortController()
  setTimeout(() => late.abort(new TooLate()), longestRead)
  return fetch(input, { ...init, signal: AbortSignal.any([late.signal, ...init.signal ? [init.signal] : []]) })
}

const listeners = new Set<() => void>()

/** Registers a listener for the end of the session. */
export const onSignedOut = (listener: () => void): void => void listeners.add(listener)

/** Notifies the listeners that the session has ended: the gateway refused the credential of a call. */
export const signedOut = (): void => listeners.forEach((listener) => listener())

const httpClient = Layer.merge(
  Layer.provide(FetchHttpClient.layer, Layer.succeed(FetchHttpClient.Fetch, fetchInTime)),
  // The page's traces are not collected.
  Layer.succeed(HttpClient.TracerDisabledWhen, () => true)
)

const clientOptions = {
  baseUrl: base,
  transformClient: (client: HttpClient.HttpClient) =>
    client.pipe(
      HttpClient.mapRequest((request) =>
        bearer === undefined ? request : HttpClientRequest.bearerToken(request, bearer)
      ),
      HttpClient.tap((response) => response.status === 401 ? Effect.sync(signedOut) : Effect.void)
    )
}

/** The client itself, for changes. */
export type AdminClient = HttpApiClient.ForApi<typeof AdminApi>

/** The groups that need nothing of the configuration's schema, which is large. The contract of the others is loaded with a first call of theirs. */
class FirstApi extends HttpApi.make("first").add(AdminMinutesGroup, AdminUsageGroup, AdminRequestsGroup) {}

const [madeClient, forgetClient] = Effect.promise(() => import("./contract.ts")).pipe(
  Effect.flatMap((contract) => HttpApiClient.make(contract.AdminApi, clientOptions)),
  Effect.provide(httpClient),
  Effect.cachedInvalidateWithTTL(Duration.infinity),
  Effect.runSync
)

/** The client of the whole contract, made once. The call after a load that failed loads again. */
const wholeClient = Effect.tapCause(madeClient, () => forgetClient)

type Calls = Readonly<Record<string, (request: unknown) => Effect.Effect<unknown, unknown>>>

/** The calls of a group, each of which waits for the whole contract. */
const callsOf = (group: string): Calls =>
  new Proxy<Calls>({}, {
    get: (_, endpoint: string) => (request: unknown) =>
      Effect.flatMap(wholeClient, (client) =>
        (client as unknown as Readonly<Record<string, Calls>>)[group]![endpoint]!(request))
  })

/** The client of the admin API. */
export class Admin extends Context.Service<Admin, AdminClient>()("console/Admin", {
  make: Effect.map(
    HttpApiClient.make(FirstApi, clientOptions),
    (first) =>
      new Proxy(first as AdminClient, {
        get: (client, group: string): unknown => Reflect.get(client, group) ?? callsOf(group)
      })
  )
}) {
  static readonly runtime = Atom.runtime(Layer.provide(Layer.effect(Admin, Admin.make), httpClient))
}

/** The groups of an API. */
export type GroupOf<Api> = Api extends HttpApi.HttpApi<infer _Id, infer Groups> ? Groups : never
type Groups = GroupOf<typeof AdminApi>

/** The reply of an endpoint. */
export type Reply<
  G extends HttpApiGroup.Identifier<Groups>,
  E extends HttpApiEndpoint.Identifier<HttpApiGroup.Endpoints<HttpApiGroup.WithIdentifier<Groups, G>>>
> = HttpApiClient.SuccessType<
  Extract<
    HttpApiEndpoint.WithIdentifier<HttpApiGroup.Endpoints<HttpApiGroup.WithIdentifier<Groups, G>>, E>,
    HttpApiEndpoint.ConstraintRequest
  >["~Success"]
>

export type AccountItem = Reply<"admin-accounts", "list">["items"][number]
export type RequestItem = Reply<"admin-requests", "list">["items"][number]

/** Calls the admin API where the reply is not one value of the contract: a stream, or a refusal with its details. */
export const rest = async (
  method: "POST" | "PUT",
  path: string,
  body: unknown,
  headers: Readonly<Record<string, string>> = {}
): Promise<Response> => {
  const response = await fetch(at(path), {
    method,
    headers: { "content-type": "application/json", ...headers, ...credentials() },
    body: JSON.stringify(body)
  })
  if (response.status === 401) signedOut()
  return response
}

type Services = Admin | Reactivity.Reactivity

/** Provides an effect with the client and its services. */
export const withServices = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, Exclude<R, Services>> =>
  Effect.flatMap(
    Effect.provideService(AtomRegistry.getResult(registry, Admin.runtime), AtomRegistry.AtomRegistry, registry),
    // Every runtime of atoms provides `Reactivity`; its type omits it.
    (services) => Effect.provideContext(effect, services as Context.Context<Services>)
  )
