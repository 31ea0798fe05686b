/**
 * Signs requests by Signature Version 4 of AWS.
 *
 * The one thing to know: a signature is of a request as it leaves, and of a time. A request that is sent again is signed again.
 */
import { AwsV4Signer } from "aws4fetch"
import * as Effect from "effect/Effect"
import type { SigningKeys } from "../domain/ownLogin.ts"

/** What a signature is valid for. */
export interface SigningScope {
  /** The service's name in signatures, such as `bedrock`. */
  readonly service: string
  readonly region: string
}

/** What is signed. */
export interface SignedRequest {
  readonly method: string
  readonly url: string
  /** Those that are signed, beside `host`; names in lower case. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | Uint8Array | undefined
}

/** The headers of the signature of a request. `at`: Unix milliseconds by the server's clock. */
export const signatureOf = (
  { body, headers, method, url }: SignedRequest,
  { id, secret, session }: SigningKeys,
  { region, service }: SigningScope,
  at: number
): Effect.Effect<Readonly<Record<string, string>>> =>
  Effect.promise(async () => {
    const signer = new AwsV4Signer({
      method,
      url,
      headers,
      body: typeof body === "object" ? Buffer.from(body) : body ?? null,
      accessKeyId: id,
      secretAccessKey: secret,
      ...(session === undefined ? {} : { sessionToken: session }),
      service,
      region,
      datetime: new Date(at).toISOString().replace(/[:-]|\.\d{3}/g, ""),
      allHeaders: true
    })
    return {
      authorization: await signer.authHeader(),
      "x-amz-date": signer.datetime,
      ...(session === undefined ? {} : { "x-amz-security-token": session })
    }
  })
