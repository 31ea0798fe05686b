/** The sources of credentials by their kind. */
import * as Redacted from "effect/Redacted"
import type { CredentialSettings } from "../config/credentials.ts"
import { awsTokens } from "./aws.ts"
import { commandTokens } from "./command.ts"
import type { TokenMaker } from "./CredentialSource.ts"
import { entraTokens } from "./entra.ts"
import { fileTokens } from "./file.ts"
import { googleTokens } from "./google.ts"

/** What issues the tokens of a configured credential. Asks for nothing before its first token is needed. */
export const tokenMakerOf = ({ entry }: CredentialSettings): TokenMaker => {
  const settings = Redacted.value(entry)
  switch (settings.from) {
    case "file":
      return fileTokens(settings.path)
    case "command":
      return commandTokens(settings)
    case "google":
      return googleTokens(settings)
    case "entra":
      return entraTokens(settings)
    case "aws":
      return awsTokens(settings)
  }
}
