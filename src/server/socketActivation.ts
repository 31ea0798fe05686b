/**
 * A socket that a service manager opened and handed over (systemd's socket activation), as descriptor 3.
 */
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"

/** The first descriptor that is handed over. */
const firstDescriptor = 3

const text = (name: string) => Config.String(name).pipe(Config.withDefault(""))

/** The descriptor to listen on, where `LISTEN_PID` names this process and `LISTEN_FDS` says that there is one. */
export const inheritedSocket: Effect.Effect<number | undefined> = Effect.gen(function*() {
  const pid = yield* text("LISTEN_PID")
  const count = yield* text("LISTEN_FDS")
  return pid === String(process.pid) && /^\d+$/.test(count) && Number(count) >= 1 ? firstDescriptor : undefined
}).pipe(Effect.orElseSucceed(() => undefined))
