/**
 * What the nodes of a gateway must know alike of their operators' logins: who has been wrong. (The secret that JWTs are signed
 * with comes with the configuration that they share.)
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as FiberSet from "effect/FiberSet"
import * as Layer from "effect/Layer"
import { Store } from "../../store/Store.ts"

export class AdminSecrets extends Context.Service<AdminSecrets, {
  /** Milliseconds by which this node's clock is behind the one that all nodes go by. */
  readonly clockOffset: () => number
  /** A name that stands for an address among nodes. */
  readonly nameOf: (address: string) => string
  /** Tells the other nodes of a wrong credential from the address of that name. */
  readonly wrong: (name: string) => void
  /** Hears of wrong credentials that other nodes were sent. */
  readonly onWrong: (listener: (name: string) => void) => void
}>()("model-gateway/admin/AdminSecrets") {
  /** One process has nobody to tell. */
  static readonly layer: Layer.Layer<AdminSecrets> = Layer.succeed(
    AdminSecrets,
    AdminSecrets.of({
      clockOffset: () => 0,
      nameOf: (address) => address,
      wrong: () => undefined,
      onWrong: () => undefined
    })
  )

  /** The nodes of a store tell one another, by names that only they can make. */
  static readonly layerShared: Layer.Layer<AdminSecrets, never, Store> = Layer.effect(
    AdminSecrets,
    Effect.gen(function*() {
      const store = yield* Store
      const fork = yield* FiberSet.makeRuntime<never, void, never>()
      return AdminSecrets.of({
        clockOffset: store.clockOffset,
        nameOf: (address) => store.nameOf(`address ${address}`),
        wrong: (name) => fork(Effect.ignore(store.run("tell", `wrong ${store.node} ${name}`))),
        onWrong: (listener) =>
          store.listen((kind, rest) => {
            const [from, name] = rest.split(" ")
            if (kind === "wrong" && from !== store.node && name !== undefined) listener(name)
          })
      })
    })
  )
}
