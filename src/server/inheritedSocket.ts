/**
 * The socket of a service manager.
 */
import * as Effect from "effect/Effect"
import { textVariable } from "../config/Environment.ts"

const firstDescriptor = 3

/**
 * The descriptor of a socket from systemd's socket activation: set if `LISTEN_PID` is this process and `LISTEN_FDS` is at
 * least 1.
 */
export const inheritedSocket: Effect.Effect<number | undefined> = Effect.gen(function*() {
  const pid = yield* textVariable("LISTEN_PID")
  const count = yield* textVariable("LISTEN_FDS")
  return pid === String(process.pid) && /^\d+$/.test(count) && Number(count) >= 1 ? firstDescriptor : undefined
})
