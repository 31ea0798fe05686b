/**
 * The HTTP client for the admin API's own calls, to the hosting platform and the release server: the runtime's `fetch`, apart
 * from the client that drivers call the upstream through. It follows no redirect by itself, so that no token goes astray.
 */
import * as Effect from "effect/Effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as HttpClient from "effect/http/HttpClient"
import * as Layer from "effect/Layer"

export const layerWebClient: Layer.Layer<HttpClient.HttpClient> = Layer.effect(
  HttpClient.HttpClient,
  Effect.map(
    HttpClient.HttpClient,
    HttpClient.transform((response) =>
      Effect.provideService(response, FetchHttpClient.RequestInit, { redirect: "manual" })
    )
  )
).pipe(Layer.provide(FetchHttpClient.layer))
