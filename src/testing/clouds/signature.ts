/**
 * Checks signatures of AWS (Signature Version 4) as its documents say them, and refuses wrong ones in its words.
 *
 * It has no code in common with what signs.
 */
import { createHash, createHmac } from "node:crypto"
import type { IncomingHttpHeaders } from "node:http"

/** A key that a server knows. */
export interface KnownKey {
  readonly secret: string
  /** The token of a session that belongs to it. */
  readonly session: string | undefined
  /** The session is over. */
  readonly isExpired: boolean
}

/** A request with its signature. */
export interface Signed {
  readonly method: string
  /** With its query, as it arrived. */
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly bytes: Uint8Array
}

/** What a server checks. */
export interface Checks {
  readonly service: string
  readonly region: string
  readonly keys: ReadonlyMap<string, KnownKey>
  /** Unix milliseconds by the server's clock. */
  readonly now: number
}

/** A refusal: the code of its error and its message. */
export interface Refusal {
  readonly code: string
  readonly message: string
}

const minutes = 60_000

/** Milliseconds by which the times of a request and of the server may differ. */
const mostSkew = 5 * minutes

const sha256 = (data: string | Uint8Array): string => createHash("sha256").update(data).digest("hex")
const hmac = (key: string | Uint8Array, text: string) => createHmac("sha256", key).update(text).digest()
const encoded = (text: string): string =>
  encodeURIComponent(text).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`)
const stamp = (millis: number): string => new Date(millis).toISOString().replace(/[:-]|\.\d{3}/g, "")

const refusal = (code: string, message: string): Refusal => ({ code, message })
const invalid = (message: string): Refusal => refusal("InvalidSignatureException", message)

/** The text that is signed, by the names of the signed headers. */
const canonical = ({ bytes, headers, method, path }: Signed, names: ReadonlyArray<string>): string => {
  const [place = "", query = ""] = path.split("?", 2)
  const pairs = [...new URLSearchParams(query)].map(([name, value]) => `${encoded(name)}=${encoded(value)}`)
  return [
    method,
    place.split("/").map(encoded).join("/"),
    pairs.toSorted().join("&"),
    ...names.map((name) => `${name}:${String(headers[name] ?? "").trim().replace(/\s+/g, " ")}`),
    "",
    names.join(";"),
    sha256(bytes)
  ].join("\n")
}

/** Why the server refuses a request; `undefined` for a right signature. */
export const refusalOf = (request: Signed, { keys, now, region, service }: Checks): Refusal | undefined => {
  const { headers } = request
  const [, id = "", date = "", signedRegion, signedService, signed = "", signature] =
    /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/([^/]+)\/aws4_request, SignedHeaders=([^,]+), Signature=([0-9a-f]{64})$/
      .exec(headers.authorization ?? "") ?? []
  if (signature === undefined) return refusal("MissingAuthenticationTokenException", "Missing Authentication Token")
  const key = keys.get(id)
  if (key === undefined || (key.session ?? "") !== (headers["x-amz-security-token"] ?? "")) {
    return refusal("UnrecognizedClientException", "The security token included in the request is invalid.")
  }
  if (key.isExpired) {
    return refusal("ExpiredTokenException", "The security token included in the request is expired")
  }
  if (signedRegion !== region) return invalid("Credential should be scoped to a valid region.")
  if (signedService !== service) return invalid(`Credential should be scoped to correct service: '${service}'.`)
  const time = String(headers["x-amz-date"] ?? "")
  const at = Date.parse(time.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, "$1-$2-$3T$4:$5:$6Z"))
  if (Number.isNaN(at) || !time.startsWith(date)) return invalid("Date in Credential scope does not match YYYYMMDD")
  if (at < now - mostSkew) {
    return invalid(
      `Signature expired: ${time} is now earlier than ${stamp(now - mostSkew)} (${stamp(now)} - 5 min.)`
    )
  }
  if (at > now + mostSkew) {
    return invalid(
      `Signature not yet current: ${time} is still later than ${stamp(now + mostSkew)} (${stamp(now)} + 5 min.)`
    )
  }
  const names = signed.split(";")
  const isWhole = names.includes("host") &&
    Object.keys(headers).every((name) => !name.startsWith("x-amz-") || names.includes(name))
  const text = [
    "AWS4-HMAC-SHA256",
    time,
    `${date}/${region}/${service}/aws4_request`,
    sha256(canonical(request, names))
  ].join("\n")
  const signing = [region, service, "aws4_request"].reduce(hmac, hmac(`AWS4${key.secret}`, date))
  return isWhole && hmac(signing, text).toString("hex") === signature ? undefined : invalid(
    "The request signature we calculated does not match the signature you provided. Check your AWS Secret Access Key and signing method. " +
      "Consult the service documentation for details."
  )
}
