/**
 * The `session` driver: a provider that speaks the session protocol over HTTP.
 */
import type { UpstreamModel } from "../../domain/UpstreamModel.ts"
import type { ExchangeLimits, Exchanges } from "../Exchange.ts"
import { type Capabilities, type Driver, type KeepsSessions, type LogsIn, sendsNothing } from "../Upstream.ts"
import { makeSessionClient } from "./client.ts"
import { makeCompletions } from "./completions.ts"

/** Settings of the driver. */
export interface SessionOptions {
  /** Without a trailing slash. */
  readonly baseUrl: string
  /** Model ids beyond the native ones. */
  readonly furtherModels: ReadonlyArray<UpstreamModel>
  readonly limits: ExchangeLimits
}

/** A driver whose accounts log in, and have sessions. */
export interface SessionDriver extends Driver {
  readonly capabilities: Capabilities & { readonly login: LogsIn; readonly sessions: KeepsSessions }
}

/** Makes the driver `session`: a chat provider with user logins. */
export const makeSessionDriver = (exchanges: Exchanges["Service"], options: SessionOptions): SessionDriver => {
  const client = makeSessionClient(exchanges, options.baseUrl, options.limits)
  return {
    name: "session",
    contract: undefined,
    isAnonymous: false,
    sends: sendsNothing,
    models: options.furtherModels,
    secrets: exchanges.secrets,
    verify: client.verify,
    complete: makeCompletions(client, exchanges.secrets),
    capabilities: {
      login: client.login,
      sessions: {
        create: client.createSession,
        list: client.listSessions,
        delete: client.deleteSession,
        deleteAll: client.deleteAllSessions
      }
    }
  }
}
