/**
 * The HTTP client through which drivers call: undici, its connections kept alive and bounded in the time they take to open.
 */
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import { buildConnector } from "@effect/platform-node/Undici"
import * as Effect from "effect/Effect"
import type * as HttpClient from "effect/http/HttpClient"
import * as Layer from "effect/Layer"
import { ConfigStore } from "../config/ConfigStore.ts"

/** Opens connections within as many milliseconds as `limit` says at the time; the TLS handshake counts too. */
const connectWithin = (limit: () => number): buildConnector.connector => {
  let timeout = limit()
  let connector = buildConnector({ timeout })
  return (options, callback) => {
    // A connector keeps TLS sessions, so it stays as long as its limit does.
    if (limit() !== timeout) {
      timeout = limit()
      connector = buildConnector({ timeout })
    }
    connector(options, callback)
  }
}

/** The most bytes of a reply's head; a longer one is a failure of the connection. */
const longestHead = 64 * 1024

/** The client; `upstream.timeouts.connect` holds for each connection that is opened from then on. */
export const layer: Layer.Layer<HttpClient.HttpClient, never, ConfigStore> = Layer.provide(
  NodeHttpClient.layerUndiciNoDispatcher,
  Layer.effect(
    NodeHttpClient.Dispatcher,
    Effect.gen(function*() {
      const store = yield* ConfigStore
      const connect = connectWithin(() => store.unsafeCurrent().upstream.timeouts.connect * 1000)
      return yield* NodeHttpClient.makeDispatcherOptions({ connect, maxHeaderSize: longestHead })
    })
  )
)
