/**
 * A new account from the body that describes it.
 */
import * as Result from "effect/Result"
import type { RawConfig } from "../../config/json.ts"
import { longestNote } from "../../config/schema.ts"
import { type GatewayError, invalidRequest } from "../../domain/GatewayError.ts"
import { headerText } from "../headerText.ts"
import type { AddAccountRequest } from "./Api.ts"

const trimmed = (text: string | null | undefined): string => text?.trim() ?? ""

/** The account as the configuration lists it. Fails for one that nobody could log in with. */
export const newAccount = (body: typeof AddAccountRequest.Type): Result.Result<RawConfig, GatewayError> => {
  const email = trimmed(body.email)
  const mobile = trimmed(body.mobile)
  const token = trimmed(body.token)
  const password = body.password ?? ""
  const note = body.note ?? ""
  if (email === "" && mobile === "" && token === "") {
    return Result.fail(invalidRequest("email, mobile or token is required", "email"))
  }
  if (mobile !== "" && !/\d/.test(mobile)) return Result.fail(invalidRequest("mobile must have digits", "mobile"))
  if (password === "" && token === "") {
    return Result.fail(invalidRequest("password or token is required", "password"))
  }
  const sendable = headerText(token, "token")
  if (Result.isFailure(sendable)) return Result.fail(sendable.failure)
  if (note.length > longestNote) {
    return Result.fail(invalidRequest(`note must have at most ${longestNote} characters`, "note"))
  }
  return Result.succeed({
    ...(email === "" ? {} : { email }),
    ...(mobile === "" ? {} : { mobile }),
    ...(password === "" ? {} : { password }),
    ...(token === "" ? {} : { token }),
    ...(note === "" ? {} : { note })
  })
}
