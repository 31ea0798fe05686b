/**
 * The drivers by the names of their protocols, whose facts are in `contracts/drivers.ts`. Recorded replies are read by their contracts.
 */
import type { UpstreamProtocol } from "../contracts/drivers.ts"
import { makeOpenAiDriver, makeResponsesDriver } from "./compatible/driver.ts"
import type { Exchanges } from "./Exchange.ts"
import { makeGenerateDriver } from "./generate/driver.ts"
import { makeMessagesDriver } from "./messages/driver.ts"
import type { ServerOptions } from "./server/ServerOptions.ts"
import { makeSessionDriver } from "./session/driver.ts"
import type { Driver } from "./Upstream.ts"

/** Makes the driver of a server. */
type MakeDriver = (exchanges: Exchanges["Service"], options: ServerOptions) => Driver

export const makers: { readonly [Name in UpstreamProtocol]: MakeDriver } = {
  session: makeSessionDriver,
  openai: makeOpenAiDriver,
  responses: makeResponsesDriver,
  messages: makeMessagesDriver,
  generate: makeGenerateDriver
}
