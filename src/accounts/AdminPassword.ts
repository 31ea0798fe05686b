/**
 * The admin password: hashed and checked by scrypt, two checks at a time, and kept from going upstream as a token.
 *
 * Most credentials that are not configured keys are callers' own tokens, and scrypt is costly on purpose. So the configuration
 * keeps one byte of the password's HMAC under the JWT secret beside the hash. A bearer with another byte is not the password
 * and needs no scrypt. One byte is too little to guess the password by, and says nothing without the secret.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { identity } from "effect/Function"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Semaphore from "effect/Semaphore"
import { createHmac, hash as hashOf, randomBytes, scrypt, type ScryptOptions, timingSafeEqual } from "node:crypto"
import { AdminCredentials } from "../config/AdminCredentials.ts"
import { ConfigStore } from "../config/ConfigStore.ts"
import { formatStoredPassword, parseStoredPassword, passwordMemory } from "../config/storedPassword.ts"
import { type GatewayError, gatewayError } from "../domain/GatewayError.ts"

/** Characters of a password: bounds the time of scrypt, which grows with its input. */
export const maxPassword = 1024

/** Bearers that are remembered as wrong; beyond this the oldest is forgotten. */
const maxRemembered = 10_000
/** Bearers that wait for scrypt concurrently. */
const maxWaiting = 64

/** 32 MiB of memory and some 60 ms of one core (RFC 7914 with N = 2^15, r = 8). */
const cost = { N: 32_768, r: 8, p: 1 } as const
const hashLength = 32

/** Uninterruptible, since node's thread pool always finishes what it has begun: the semaphores count what runs there. */
const derive = (password: string, salt: Buffer, length: number, options: ScryptOptions): Effect.Effect<Buffer> =>
  Effect.uninterruptible(Effect.callback((resume) => {
    scrypt(password.normalize("NFC"), salt, length, { ...options, maxmem: passwordMemory }, (error, hash) => {
      resume(error === null ? Effect.succeed(hash) : Effect.die(error))
    })
  }))

/** Hashes a password with a new salt. */
export const hashPassword = (password: string): Effect.Effect<string> =>
  Effect.suspend(() => {
    const salt = randomBytes(16)
    return Effect.map(derive(password, salt, hashLength, cost), (hash) => formatStoredPassword({ cost, salt, hash }))
  })

/** Whether this is the hashed password. A hash of another format matches no password. */
const verifyPassword = (password: string, stored: string): Effect.Effect<boolean> =>
  Effect.suspend(() => {
    const known = parseStoredPassword(stored)
    if (known === undefined) return Effect.succeed(false)
    return Effect.map(
      derive(password, known.salt, known.hash.length, known.cost),
      (actual) => timingSafeEqual(actual, known.hash)
    )
  })

const busy = gatewayError("rate_limit_exceeded", "Too many unknown credentials are being checked", { retryAfter: 5 })

/** Runs a check once the address may guess again, and counts a wrong credential. */
export type InTurn = (check: Effect.Effect<boolean, GatewayError>) => Effect.Effect<boolean, GatewayError>

/** The bearers checked against one password hash, as HMACs under a key of this process. */
interface Found {
  readonly hash: string
  right: string | undefined
  /** Oldest first. */
  readonly wrong: Set<string>
}

export class AdminPassword extends Context.Service<AdminPassword, {
  /** Whether this is the password with this hash. `guess`: the client was wrong too often; guesses run one at a time. */
  readonly verify: (password: string, hash: string, guess: boolean) => Effect.Effect<boolean>
  /** The password's hash, and the byte that the configuration keeps beside it (`admin.password_check`). */
  readonly hash: (password: string) => Effect.Effect<{ readonly hash: string; readonly check: string }>
  /** The byte (`admin.password_check`) of a password that `verify` has accepted. */
  readonly checkOf: (password: string, hash: string) => string
  /**
   * Whether a business credential is the configured password. `inTurn` runs the first check of a credential that may be the
   * password. Fails with `rate_limit_exceeded` while too many credentials wait for their check.
   */
  readonly isPassword: (credential: string, inTurn?: InTurn) => Effect.Effect<boolean, GatewayError>
  /** Keeps a credential of the admin API from going upstream, also after another one replaces it. */
  readonly withhold: (credential: string) => void
  /** Whether a credential with this SHA-256, in hex, is withheld. */
  readonly isWithheld: (digest: string) => boolean
}>()("model-gateway/accounts/AdminPassword") {
  static readonly make = Effect.gen(function*() {
    const config = yield* ConfigStore
    // scrypt runs in node's pool of four threads, which files and name look-ups need too. Guesses and callers' bearers share
    // one permit, so that a flood of them leaves the other permit to operators.
    const hashing = yield* Semaphore.make(2)
    const guessing = yield* Semaphore.make(1)
    const foundKey = randomBytes(32)
    const secret = Redacted.value((yield* AdminCredentials).jwtSecret)
    let found: Found | undefined
    /** Digests of credentials that were right. */
    const withheld = new Set<string>()
    let waiting = 0

    const macOf = (text: string) => createHmac("sha256", foundKey).update(text).digest("base64url")
    const foundFor = (hash: string): Found => {
      if (found?.hash !== hash) found = { hash, right: undefined, wrong: new Set() }
      return found
    }

    /** Whether a credential is the password; `undefined` before its check. */
    const remembered = ({ right, wrong }: Found, mac: string): boolean | undefined => {
      if (right === mac) return true
      return wrong.has(mac) ? false : undefined
    }

    /** Identifies the hash and the secret that a byte belongs to: with others the byte is ignored. */
    const signature = (hash: string) => createHmac("sha256", secret).update(`hash ${hash}`).digest("hex").slice(0, 16)
    const byteOf = (password: string) =>
      createHmac("sha256", secret).update(`password ${password.normalize("NFC")}`).digest("hex").slice(0, 2)
    const checkOf = (password: string, hash: string) => `${signature(hash)}-${byteOf(password)}`
    /** The configured byte, and the hash and text that it was read from. */
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
        // Comparing MACs under a secret key leaks nothing by its timing.
        const mac = macOf(password)
        const is = remembered(of, mac)
        if (is !== undefined) return Effect.succeed(is)
        const checked = Effect.map(hashing.withPermit(verifyPassword(password, hash)), (right) => {
          if (right) {
            of.right = mac
            return true
          }
          of.wrong.add(mac)
          if (of.wrong.size > maxRemembered) of.wrong.delete(of.wrong.values().next().value!)
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
      withhold: (credential) => {
        withheld.add(hashOf("sha256", credential))
      },
      isWithheld: (digest) => withheld.has(digest),
      isPassword: (credential, inTurn = identity) => {
        const { password_check = "", password_hash } = config.now().admin
        if (password_hash === undefined) return Effect.succeed(false)
        const hash = Redacted.value(password_hash)
        const byte = knownByte(hash, password_check)
        if (byte !== undefined && byte !== byteOf(credential)) return Effect.succeed(false)
        const checked = Effect.suspend(() => {
          if (waiting >= maxWaiting) return Effect.fail(busy)
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

  static readonly layer: Layer.Layer<AdminPassword, never, AdminCredentials | ConfigStore> = Layer.effect(
    AdminPassword,
    AdminPassword.make
  )
}
