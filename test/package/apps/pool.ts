/** Only the pool of accounts. */
import { Effect, Exit, Layer } from "effect"
import { Accounts, anywhere, ConfigStore, fixedUpstream, makeDriver } from "model-gateway"
import assert from "node:assert/strict"

const Config = ConfigStore.layerMemory({
  accounts: [{ token: "token-of-one" }, { token: "token-of-two" }],
  runtime: { account_max_inflight: 1, account_max_queue: 0 }
})

const Pool = Accounts.layer.pipe(
  Layer.provide(fixedUpstream(makeDriver({ complete: () => Effect.never }))),
  Layer.provide(Config)
)

const anyone = { _tag: "Managed", owner: "me", target: undefined } as const

const lease = Effect.gen(function*() {
  const accounts = yield* Accounts
  const { credential } = yield* accounts.lease(anyone, anywhere)
  return yield* credential.token
})

const program = Effect.gen(function*() {
  const accounts = yield* Accounts
  const tokens = yield* Effect.scoped(Effect.gen(function*() {
    const tokens = [yield* lease, yield* lease]
    const third = yield* Effect.exit(lease)
    assert.ok(Exit.isFailure(third))
    assert.match(String(third.cause), /rate_limit_exceeded|queue/i)
    return tokens
  }))
  assert.deepEqual(tokens.sort(), ["token-of-one", "token-of-two"])
  assert.equal((yield* accounts.status).in_use, 0)
})

await Effect.runPromise(Effect.provide(program, Pool))
