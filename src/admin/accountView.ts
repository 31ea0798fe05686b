/**
 * An account as the admin API shows it: never its password, never more than the beginning of its token.
 */
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import type { Account } from "../config/Account.ts"
import { tokenPreview } from "../domain/identity.ts"

/** A configured account (spec "Account"). */
export const AccountView = Schema.Struct({
  identifier: Schema.String.annotate({ description: "Email, mobile or `token:<hash>` of an account." }),
  email: Schema.String,
  mobile: Schema.String.annotate({ description: "Empty when there is none." }),
  has_password: Schema.Boolean,
  has_token: Schema.Boolean,
  token_preview: Schema.String.annotate({ description: "The beginning of the token, then `...`." })
}).annotate({ identifier: "Account" })

/** What may be shown of an account; empty strings stand for what it has not. */
export const viewAccount = (account: Account): typeof AccountView.Type => ({
  identifier: account.identifier,
  email: account.email ?? "",
  mobile: account.mobile ?? "",
  has_password: account.password !== undefined,
  has_token: account.token !== undefined,
  token_preview: account.token === undefined ? "" : tokenPreview(Redacted.value(account.token))
})
