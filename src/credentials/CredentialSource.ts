/**
 * Sources of the tokens of accounts. A `TokenMaker` issues tokens; a `CredentialSource` holds the issued one and renews it
 * (`renewal.ts`).
 *
 * The one thing to know: what is here names a source and a step of it, never a token or a secret.
 */
import type * as Effect from "effect/Effect"
import { secretsOfToken, tokenOfKeys, tokenOfLogin } from "../domain/ownLogin.ts"
import { UpstreamFailure } from "../domain/UpstreamFailure.ts"

/** A token as its source has issued it. */
export interface IssuedToken {
  readonly token: string
  /** Milliseconds that it serves; `undefined` until the upstream refuses it. */
  readonly lives: number | undefined
  /** Milliseconds until a newer one is asked for while it serves; `undefined` for three quarters of its life. */
  readonly renewAfter: number | undefined
}

/** What issues the tokens of one account. */
export interface TokenMaker {
  /** As in `credential.from`, or `login`. */
  readonly kind: string
  /** Whom the tokens stand for, in words for operators. */
  readonly identity: () => string
  /** Each node of a store issues its own tokens; the tokens of other sources are issued once for all nodes. */
  readonly isOfNode: boolean
  /**
   * How servers get its tokens: as they get keys, as `Authorization: Bearer` whatever the header of their keys is, or as a signature of each
   * request by them.
   */
  readonly sends: "key" | "bearer" | "signature"
  /** Issues a token. Fails with the step that failed. */
  readonly issue: Effect.Effect<IssuedToken, UpstreamFailure>
}

/** The credential of one account at one upstream. */
export interface CredentialSource {
  /** The token for a request: the held one while it serves, else a new one. Read the property when the token is needed. */
  readonly current: Effect.Effect<string | undefined, UpstreamFailure>
  /** Replaces a token that the upstream has refused. */
  readonly renew: (stale: string | undefined) => Effect.Effect<string | undefined, UpstreamFailure>
  /** The end of the held token in Unix milliseconds; `undefined` without a known end. */
  readonly expires: () => number | undefined
  /** Whom the credential stands for, in words for operators. */
  readonly identity: () => string
}

/** What operators see of a credential. Times are Unix milliseconds. */
export interface CredentialFacts {
  readonly kind: string
  readonly identity: string
  readonly expires: number | undefined
  /** When the held token was issued. */
  readonly renewed: number | undefined
  /** The last renewal, if it failed. */
  readonly failure: { readonly at: number; readonly message: string } | undefined
}

/** The facts of a credential that has issued nothing. */
export const unusedFacts = ({ identity, kind }: TokenMaker): CredentialFacts => ({
  kind,
  identity: identity(),
  expires: undefined,
  renewed: undefined,
  failure: undefined
})

/** The failure of a step of a source. `advice` is for operators alone. */
export const sourceFailed = (kind: string, step: string, advice?: string): UpstreamFailure =>
  new UpstreamFailure({
    phase: "login",
    kind: "refused",
    refusal: "source",
    message: `${kind}: ${step}`,
    ...(advice === undefined ? {} : { advice })
  })

/** A failure of a source in words for operators. */
export const failureText = ({ advice, message = "" }: UpstreamFailure): string =>
  advice === undefined ? message : `${message} (${advice})`

/** A token of a source as drivers send it. */
export const sentToken = (source: TokenMaker | undefined, token: string | undefined): string | undefined =>
  token === undefined || source === undefined || source.sends === "key"
    ? token
    : source.sends === "bearer"
    ? tokenOfLogin({ header: "authorization", value: `Bearer ${token}` })
    : tokenOfKeys(token)

/** A token of a source, of what drivers send. */
export const bareToken = (sent: string): string => secretsOfToken(sent).at(-1)!

/** The most bytes of a token. */
export const longestToken = 64 * 1024

/** The token in what a source has printed: one line of visible ASCII. Fails for anything else. */
export const tokenIn = (text: string): string | undefined => {
  const token = text.trim()
  return token.length <= longestToken && /^[!-~]+$/.test(token) ? token : undefined
}
