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

export const Preferences = () => {
  const t = useTexts()
  const language = useAtom(languageAtom)
  const theme = useAtom(themeAtom)
  return (
    <div class="preferences">
      <label>
        <span>{t.common.language}</span>
        <select
          value={language}
          onChange={(event) => void chooseLanguage(event.currentTarget.value as Language)}
        >
          {Object.entries(languages).map(([id, name]) => <option key={id} value={id}>{name}</option>)}
        </select>
      </label>
      <label>
        <span>{t.common.theme}</span>
        <select value={theme} onChange={(event) => chooseTheme(event.currentTarget.value as Theme)}>
          {themes.map((id) => <option key={id} value={id}>{t.common.themes[id]}</option>)}
        </select>
      </label>
    </div>
  )
}
