/**
 * Whether the gateway runs in a container, where nobody reaches a loopback address from outside.
 */
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import { existsSync } from "node:fs"

/** Files and variables that the usual engines put into their containers. */
const files = ["/.dockerenv", "/run/.containerenv"]
const variables = ["container", "KUBERNETES_SERVICE_HOST"]

const isSet = (name: string) =>
  Config.String(name).pipe(
    Config.withDefault(""),
    Effect.map((value) => value !== ""),
    Effect.orElseSucceed(() => false)
  )

export const inContainer: Effect.Effect<boolean> = Effect.map(
  Effect.forEach(variables, isSet),
  (set) => set.includes(true) || files.some((file) => existsSync(file))
)

/** Whether only the machine (or the container) itself reaches what listens there. */
export const isLoopback = (host: string): boolean => /^(?:localhost|127(?:\.\d+){3}|::1)$/i.test(host)
