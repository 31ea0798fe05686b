/**
 * The choices of language and theme.
 */
import type { Language, Theme } from "../state/preferences.ts"
import {
  chooseLanguage,
  chooseTheme,
  languageAtom,
  languages,
  themeAtom,
  themes,
  useTexts
} from "../state/preferences.ts"
import { useAtom } from "../state/registry.ts"
import { Select } from "./Select.tsx"

export const Preferences = () => {
  const t = useTexts()
  const language = useAtom(languageAtom)
  const theme = useAtom(themeAtom)
  return (
    <div class="preferences">
      <Select
        class=""
        label={t.common.language}
        value={language}
        options={Object.entries(languages)}
        onValue={(value) => void chooseLanguage(value as Language)}
      />
      <Select
        class=""
        label={t.common.theme}
        value={theme}
        options={themes.map((id) => [id, t.common.themes[id]] as const)}
        onValue={(value) => chooseTheme(value as Theme)}
      />
    </div>
  )
}
