/**
 * The whole gateway without a socket, for tests that send thousands of requests or control the clock.
 */
import { Context, Effect, Layer } from "effect"
import type { ConfigInput } from "../../src/config/document.ts"
import type { RawConfig } from "../../src/config/json.ts"
import { GatewayTest } from "../../src/testing/GatewayTest.ts"

/** Builds a gateway on the embedded upstream in the current scope, with the current clock. */
export const webGateway = ({ upstream = {}, ...config }: RawConfig = {}) => {
  const groups = { accounts: [], upstream: { driver: "embedded", ...upstream as RawConfig }, ...config } as ConfigInput
  return Effect.map(
    Layer.build(GatewayTest.layer({ config: groups })),
    (built) => Context.get(built, GatewayTest).fetch
  )
}

/** A `fetch` to the gateway that also records the responses. */
export const overheard = (fetch: typeof globalThis.fetch) => {
  let said = ""
  const listening: typeof globalThis.fetch = async (input, init) => {
    const response = await fetch(input, init)
    if (response.body === null) return response
    const heard = response.body.pipeThrough(
      new TransformStream<Uint8Array, Uint8Array>({
        transform(bytes, controller) {
          said += new TextDecoder().decode(bytes)
          controller.enqueue(bytes)
        }
      })
    )
    return new Response(heard, response)
  }
  return { fetch: listening, said: () => said }
}
