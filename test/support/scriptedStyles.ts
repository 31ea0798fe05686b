/**
 * Styles over a scripted completion service, without sockets, for tests of the styles alone.
 */
import * as Effect from "effect/Effect"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServer from "effect/http/HttpServer"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { Accounts } from "../../src/accounts/Accounts.ts"
import { Callers } from "../../src/accounts/Callers.ts"
import { CredentialThrottles } from "../../src/accounts/CredentialThrottles.ts"
import { Completion, type CompletionInput } from "../../src/completion/Completion.ts"
import { completionBy } from "../../src/completion/completionOf.ts"
import { Deadlines } from "../../src/config/clock/Deadlines.ts"
import { ConfigStore } from "../../src/config/ConfigStore.ts"
import type { RawConfig } from "../../src/config/json.ts"
import type { GatewayError } from "../../src/domain/GatewayError.ts"
import type { ReplyEvent } from "../../src/domain/ReplyEvent.ts"
import { WorkLimit } from "../../src/http/WorkLimit.ts"
import { GenerateHandlers } from "../../src/styles/generate/Handlers.ts"
import { layerStyles } from "../../src/styles/handlers.ts"
import { MessagesHandlers } from "../../src/styles/messages/Handlers.ts"
import { ServerFindings } from "../../src/upstream/ServerFindings.ts"
import { usageInMemory } from "./usage.ts"

export const businessKey = "test-key"

/** The result of a completion: its events, or the failure to open it. */
export type Script = (
  input: CompletionInput
) => Effect.Effect<Stream.Stream<ReplyEvent, GatewayError>, GatewayError, Scope.Scope>

/** A script that returns the same events for every request, each in a separate chunk. */
export const always = (events: ReadonlyArray<ReplyEvent>): Script => () =>
  Effect.succeed(Stream.rechunk(Stream.fromIterable(events), 1))

/** Completions are scripted, so that nothing takes an account. */
const noAccounts = Layer.mock(Accounts)({
  driverOf: () => undefined,
  whyNot: () => "priority",
  hindrance: () => undefined
})

/** Serves the styles. `inputs` collects the requested completions. */
export const scriptedStyles = (script: Script, config: RawConfig = {}) => {
  const inputs: Array<CompletionInput> = []
  const completion = completionBy((input) =>
    Effect.suspend(() => {
      inputs.push(input)
      return Effect.map(
        script(input),
        (events) => ({ id: "session-1", driver: "session" as const, maker: undefined, events })
      )
    })
  )
  const { dispose, handler } = HttpRouter.toWebHandler(
    Layer.merge(MessagesHandlers, GenerateHandlers).pipe(
      Layer.provide(layerStyles),
      Layer.provide(noAccounts),
      Layer.provide([
        Layer.provide(Callers.layer, CredentialThrottles.layerNone),
        Deadlines.layer,
        WorkLimit.layer,
        usageInMemory,
        Layer.mock(ServerFindings)({ now: () => [], away: () => new Map(), readAgain: Effect.void }),
        Layer.succeed(Completion, completion)
      ]),
      Layer.provide(ConfigStore.layerJson({ keys: [businessKey], ...config })),
      Layer.provide(HttpServer.layerServices),
      Layer.provide(Logger.layer([])),
      Layer.orDie
    ),
    { disableLogger: true, routerConfig: { maxParamLength: 4096, caseSensitive: true } }
  )
  const fetch = (input: string | URL | Request, init?: RequestInit): Promise<Response> =>
    handler(new Request(input, init))
  return { fetch, inputs, dispose }
}
