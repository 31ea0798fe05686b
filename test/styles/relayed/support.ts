/** A gateway over a scripted server, with the vendor's client. */
import OpenAI from "openai"
import type { RawConfig } from "../../../src/config/json.ts"
import { adminKey, businessKey, type GatewayOptions, type RunningGateway, startGateway } from "../../support/gateway.ts"
import type { OpenAiServer } from "../../support/openaiServer.ts"

export const models = {
  text: "their-text",
  ranker: "their-ranker",
  moderator: "their-moderator",
  painter: "their-painter",
  speaker: "their-speaker",
  ears: "their-ears"
}

/** Starts a gateway with two accounts over this server. */
export const startOver = (
  server: Pick<OpenAiServer, "baseUrl">,
  config: RawConfig = {},
  upstream: RawConfig = {},
  options: GatewayOptions = {}
): Promise<RunningGateway> =>
  startGateway({
    accounts: [{ token: "sk-one" }, { token: "sk-two" }],
    ...config,
    upstream: { driver: "openai", base_url: server.baseUrl, models, ...upstream }
  }, options)

export const clientOf = (gateway: RunningGateway): OpenAI =>
  new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: businessKey, maxRetries: 0 })

/** The error that a call fails with. */
export const errorOf = (call: Promise<unknown>): Promise<InstanceType<typeof OpenAI.APIError>> =>
  call.then(
    () => {
      throw new Error("The call succeeded")
    },
    (error: unknown) => {
      if (error instanceof OpenAI.APIError) return error
      throw error
    }
  )

/** Sends a request without the vendor's client. */
export const post = (
  gateway: RunningGateway,
  path: string,
  body: string | FormData | Uint8Array<ArrayBuffer>,
  headers: Record<string, string> = {}
) =>
  fetch(`${gateway.url}${path}`, {
    method: "POST",
    headers: { authorization: `Bearer ${businessKey}`, ...headers },
    body
  })

/** The newest record, as the admin API shows it. */
export const lastRecord = async (gateway: RunningGateway): Promise<{ readonly [field: string]: unknown }> => {
  const response = await fetch(`${gateway.url}/admin/requests?limit=1`, {
    headers: { authorization: `Bearer ${adminKey}` }
  })
  const { items } = await response.json() as { items: ReadonlyArray<{ readonly [field: string]: unknown }> }
  return items[0]!
}
