/** Which of several nodes sends an event: the one that claims it in the store. While the store is lost, each node sends its own. */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { CurrentNotices } from "../../config/Notices.ts"
import { formatTimestamp } from "../../domain/time.ts"
import { Store } from "./Store.ts"

/** Claims what a name stands for, for some milliseconds; false if another node has it. */
export type ClaimNotice = (name: string, millis: number) => Effect.Effect<boolean>

export const CurrentNoticeClaim = Context.Reference<ClaimNotice>("model-gateway/store/NoticeClaim", {
  defaultValue: () => () => Effect.succeed(true)
})

/** Claims of the nodes of a store, and the events of the store itself. */
export const layerSharedNotices: Layer.Layer<never, never, Store> = Layer.effect(
  CurrentNoticeClaim,
  Effect.gen(function*() {
    const store = yield* Store
    const notices = yield* CurrentNotices
    store.listen(({ _tag }) => {
      if (_tag !== "up" && _tag !== "lost") return
      const since = formatTimestamp(store.status().since)
      notices.publish(_tag === "up" ? "store.back" : "store.lost", "store", { since })
    })
    return (name, millis) =>
      store.send("SET", `gw:{main}:notice:${name}`, "1", "NX", "PX", String(Math.ceil(millis))).pipe(
        Effect.map((reply) => reply !== null),
        Effect.orElseSucceed(() => true)
      )
  })
)
