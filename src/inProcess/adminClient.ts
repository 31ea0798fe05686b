/**
 * A typed client for the admin API, made from the server's own contract.
 */
import * as HttpApiClient from "effect/http-api/HttpApiClient"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import type * as Redacted from "effect/Redacted"
import { AdminApi } from "../server/OperatorApi.ts"

/** The gateway's address and the credential. */
export interface AdminClientOptions {
  /** The gateway's address, including the path of a mounted gateway. */
  readonly baseUrl: string
  /** The admin key, or a JWT. */
  readonly credential: Redacted.Redacted<string> | string
}

/**
 * Makes the client. It has a method for each endpoint, by group, as in `client["admin-keys"].add({ payload: { key } })`.
 * A method fails with the `GatewayError` of the response.
 */
export const makeAdminClient = ({ baseUrl, credential }: AdminClientOptions) =>
  HttpApiClient.make(AdminApi, {
    baseUrl,
    transformClient: HttpClient.mapRequest(HttpClientRequest.bearerToken(credential))
  })
