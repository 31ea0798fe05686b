/** The source `entra`: a client with a secret, a certificate or a federated token, or the managed identity of this computer. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { decodeJwt, SignJWT } from "jose"
import { createHash, createPrivateKey, X509Certificate } from "node:crypto"
import type { credentialKinds } from "../config/document.ts"
import { readRegularFile } from "../config/regularFile.ts"
import type { UpstreamFailure } from "../domain/UpstreamFailure.ts"
import { longestToken, sourceFailed, tokenIn, type TokenMaker } from "./CredentialSource.ts"
import { formTo, issueBy, nearTo, type TokenRequest } from "./tokenServers.ts"

const kind = "entra"
const defaultAuthority = "https://login.microsoftonline.com"
const defaultScope = "https://cognitiveservices.azure.com/.default"

type Settings = typeof credentialKinds["entra"]["Type"]

/** Seconds that an assertion is valid. */
const assertionLife = 600

const read = (what: string, file: string): Effect.Effect<string, UpstreamFailure> =>
  readRegularFile(file, longestToken).pipe(
    Effect.mapBoth({
      onFailure: (error) => sourceFailed(kind, `${what} cannot be read: ${error.kind}`, error.message),
      onSuccess: (bytes) => bytes.toString("utf8")
    })
  )

/** The token in a file, which is read at each issue. */
const federatedToken = (file: string): Effect.Effect<string, UpstreamFailure> =>
  Effect.flatMap(read("the federated token", file), (text) => {
    const token = tokenIn(text)
    return token === undefined
      ? Effect.fail(sourceFailed(kind, "the federated file has no token of one line"))
      : Effect.succeed(token)
  })

/** The assertion of a client by the certificate and its key in a PEM file, which is read at each issue. `x5t` names the certificate. */
const certified = Effect.fnUntraced(function*(
  file: string,
  client: string,
  audience: string
): Effect.fn.Return<string, UpstreamFailure> {
  const pem = yield* read("the certificate", file)
  const now = Math.floor((yield* Clock.currentTimeMillis) / 1_000)
  return yield* Effect.tryPromise({
    try: () =>
      new SignJWT({ jti: crypto.randomUUID() })
        .setProtectedHeader({
          alg: "RS256",
          typ: "JWT",
          x5t: createHash("sha1").update(new X509Certificate(pem).raw).digest("base64url")
        })
        .setIssuer(client)
        .setSubject(client)
        .setAudience(audience)
        .setNotBefore(now)
        .setExpirationTime(now + assertionLife)
        .sign(createPrivateKey(pem)),
    catch: () => sourceFailed(kind, "the file has no certificate with its private key")
  })
})

/** The form of a client that proves itself by a secret, or by an assertion. */
const clientRequest = (
  {
    authority = defaultAuthority,
    certificate_file,
    client = "",
    federated_file,
    scope = defaultScope,
    secret = "",
    tenant = ""
  }: Settings
): Effect.Effect<TokenRequest, UpstreamFailure> => {
  const url = `${authority.replace(/\/+$/, "")}/${encodeURIComponent(tenant)}/oauth2/v2.0/token`
  const form = (proof: Readonly<Record<string, string>>) =>
    formTo(url, { grant_type: "client_credentials", client_id: client, scope, ...proof })
  const assertion = federated_file !== undefined
    ? federatedToken(federated_file)
    : certificate_file === undefined
    ? undefined
    : certified(certificate_file, client, url)
  if (assertion === undefined) return Effect.succeed(form({ client_secret: secret }))
  const client_assertion_type = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
  return Effect.map(assertion, (client_assertion) => form({ client_assertion_type, client_assertion }))
}

/** The question to the server of managed identities: that of App Service where its variables are set, else that of virtual machines. */
const identityRequest = ({ client, scope = defaultScope }: Settings): TokenRequest => {
  const { IDENTITY_ENDPOINT: endpoint = "", IDENTITY_HEADER: header } = process.env
  const named = {
    resource: scope.replace(/\/\.default$/, ""),
    ...(client === undefined ? {} : { client_id: client })
  }
  const isService = URL.canParse(endpoint) && header !== undefined
  const address = isService ? endpoint : "http://169.254.169.254/metadata/identity/oauth2/token"
  const query = new URLSearchParams({ "api-version": isService ? "2019-08-01" : "2018-02-01", ...named })
  return nearTo(`${address}?${query}`, isService ? { "x-identity-header": header } : { metadata: "true" })
}

/** The object id that a token names. */
const objectIdIn = (token: string): string | undefined => {
  try {
    const { oid } = decodeJwt(token)
    return typeof oid === "string" && /^[\w-]{1,64}$/.test(oid) ? oid : undefined
  } catch {
    return undefined
  }
}

/** Issues tokens of Microsoft Entra ID. */
export const entraTokens = (settings: Settings): TokenMaker => {
  const isClient = settings.tenant !== undefined
  let identity = settings.client ?? "the managed identity"
  const issued = isClient
    ? Effect.flatMap(clientRequest(settings), (request) => issueBy(kind, "the token server", request))
    : Effect.suspend(() => issueBy(kind, "the identity server", identityRequest(settings)))
  return {
    kind,
    identity: () => identity,
    isOfNode: false,
    sends: "bearer",
    issue: Effect.tap(issued, ({ token }) =>
      Effect.sync(() => {
        identity = objectIdIn(token) ?? identity
      }))
  }
}
