/**
 * The admin password: checked by scrypt, two at a time, and known to those who must not send it upstream.
 *
 * Most credentials that are no configured key are callers' own tokens, and scrypt is costly on purpose. So one byte of the
 * password's HMAC under the JWT secret stands beside its hash: a bearer that does not agree in it is not the password. One
 * byte tells too little to guess by, and nothing without the secret.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { identity } from "effect/Function"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Semaphore from "effect/Semaphore"
import { createHmac, randomBytes } from "node:crypto"
import { ConfigStore } from "../config/ConfigStore.ts"
import { type GatewayError, gatewayError } from "../domain/GatewayError.ts"
import { hashPassword, verifyPassword } from "./passwordHash.ts"

/** scrypt takes as long as its input allows; nobody has a password of this length. */
export const maxPassword = 1024

/** Bearers that are known not to be the password. */
const mostKnown = 10_000
/** Bearers that may wait for scrypt. */
const mostWaiting = 64

const busy = gatewayError("rate_limit_exceeded", "Too many unknown credentials are being checked", { retryAfter: 5 })

/** Runs a check when its turn comes, and counts it where it finds a wrong credential. */
export type InTurn = (check: Effect.Effect<boolean, GatewayError>) => Effect.Effect<boolean, GatewayError>

/** What bearers were found to be, for one password hash. By HMAC under a key of this process. */
interface Found {
  readonly hash: string
  right: string | undefined
  /** Oldest first. */
  readonly wrong: Set<string>
}

export class AdminPassword extends Context.Service<AdminPassword, {
  /** Whether this is the password with this hash. `guess`: from somebody who has been wrong too often; these take turns. */
  readonly verify: (password: string, hash: string, guess: boolean) => Effect.Effect<boolean>
  /** The password's hash, and the byte to be kept beside it (`admin.password_check`). */
  readonly hash: (password: string) => Effect.Effect<{ readonly hash: string; readonly check: string }>
  /** The byte for a password that is known to be right. */
  readonly checkOf: (password: string, hash: string) => string
  /**
   * Whether a business credential is the configured password. `inTurn` runs the check of one that may be, the first time that it
   * comes. Fails with `rate_limit_exceeded` where too many wait to be checked.
   */
  readonly isPassword: (credential: string, inTurn?: InTurn) => Effect.Effect<boolean, GatewayError>
}>()("model-gateway/accounts/AdminPassword") {
  static readonly make = Effect.gen(function*() {
    const config = yield* ConfigStore
    // scrypt runs in node's thread pool of four, which files and name look-ups need too. Those who guess, and callers, share
    // one permit, so that a flood of them leaves the other one to everybody else.
    const hashing = yield* Semaphore.make(2)
    const guessing = yield* Semaphore.make(1)
    const foundKey = randomBytes(32)
    const secret = Redacted.value(config.jwtSecret)
    let found: Found | undefined
    let waiting = 0

    const macOf = (text: string) => createHmac("sha256", foundKey).update(text).digest("base64url")
    const foundFor = (hash: string): Found => {
      if (found?.hash !== hash) found = { hash, right: undefined, wrong: new Set() }
      return found
    }

    /** What a credential was found to be; `undefined` before it is checked. */
    const remembered = ({ right, wrong }: Found, mac: string): boolean | undefined => {
      if (right === mac) return true
      return wrong.has(mac) ? false : undefined
    }

    /** Says which hash and which secret a byte is for: another one says nothing. */
    const signature = (hash: string) => createHmac("sha256", secret).update(`hash ${hash}`).digest("hex").slice(0, 16)
    const byteOf = (password: string) =>
      createHmac("sha256", secret).update(`password ${password.normalize("NFC")}`).digest("hex").slice(0, 2)
    const checkOf = (password: string, hash: string) => `${signature(hash)}-${byteOf(password)}`
    /** The configured byte and the hash for which it was read. */
    let known: { readonly hash: string; readonly check: string; readonly byte: string | undefined } | undefined
    const knownByte = (hash: string, check: string): string | undefined => {
      if (known?.hash !== hash || known.check !== check) {
        const [signed, byte] = check.split("-")
        known = { hash, check, byte: signed === signature(hash) ? byte : undefined }
      }
      return known.byte
    }

    const verify = (password: string, hash: string, guess: boolean): Effect.Effect<boolean> =>
      Effect.suspend(() => {
        if (password.length > maxPassword) return Effect.succeed(false)
        const of = foundFor(hash)
        // Comparing MACs under a secret key tells an attacker nothing by its time.
        const mac = macOf(password)
        const is = remembered(of, mac)
        if (is !== undefined) return Effect.succeed(is)
        const checked = Effect.map(hashing.withPermit(verifyPassword(password, hash)), (right) => {
          if (right) {
            of.right = mac
            return true
          }
          of.wrong.add(mac)
          if (of.wrong.size > mostKnown) of.wrong.delete(of.wrong.values().next().value!)
          return false
        })
        return guess ? guessing.withPermit(checked) : checked
      })

    return AdminPassword.of({
      verify,
      hash: (password) =>
        Effect.map(
          hashing.withPermit(hashPassword(password)),
          (hash) => ({ hash, check: checkOf(password, hash) })
        ),
      checkOf,
      isPassword: (credential, inTurn = identity) => {
        const { password_check = "", password_hash } = config.unsafeCurrent().admin
        if (password_hash === undefined) return Effect.succeed(false)
        const hash = Redacted.value(password_hash)
        const byte = knownByte(hash, password_check)
        if (byte !== undefined && byte !== byteOf(credential)) return Effect.succeed(false)
        const checked = Effect.suspend(() => {
          if (waiting >= mostWaiting) return Effect.fail(busy)
          waiting++
          return Effect.ensuring(verify(credential, hash, true), Effect.sync(() => waiting--))
        })
        return Effect.suspend(() => {
          const is = remembered(foundFor(hash), macOf(credential))
          return is === undefined ? inTurn(checked) : Effect.succeed(is)
        })
      }
    })
  })

  static readonly layer: Layer.Layer<AdminPassword, never, ConfigStore> = Layer.effect(
    AdminPassword,
    AdminPassword.make
  )
}
