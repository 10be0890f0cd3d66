// What the client JDBC reads: JSON, as dbdyno writes it.

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Just enough of JSON: the lines that dbdyno writes. */
final class Json {
    final String text;
    int at;

    Json(String text) {
        this.text = text;
    }

    @SuppressWarnings("unchecked")
    Map<String, Object> object() {
        return (Map<String, Object>) value();
    }

    Object value() {
        char first = text.charAt(at);
        switch (first) {
            case '{': {
                Map<String, Object> found = new LinkedHashMap<>();
                for (at++; text.charAt(at) != '}'; comma()) {
                    String name = string();
                    at++; // the colon
                    found.put(name, value());
                }
                at++;
                return found;
            }
            case '[': {
                List<Object> found = new ArrayList<>();
                for (at++; text.charAt(at) != ']'; comma()) found.add(value());
                at++;
                return found;
            }
            case '"':
                return string();
            case 'n':
                at += 4;
                return null;
            case 't':
                at += 4;
                return true;
            case 'f':
                at += 5;
                return false;
            default:
                return number();
        }
    }

    void comma() {
        if (text.charAt(at) == ',') at++;
    }

    Object number() {
        int from = at;
        while (at < text.length() && "+-.eE0123456789".indexOf(text.charAt(at)) >= 0) at++;
        String digits = text.substring(from, at);
        return digits.matches("-?[0-9]+") ? (Object) Long.valueOf(digits) : (Object) Double.valueOf(digits);
    }

    String string() {
        StringBuilder found = new StringBuilder();
        for (at++; text.charAt(at) != '"'; at++) {
            char next = text.charAt(at);
            if (next != '\\') {
                found.append(next);
                continue;
            }
            next = text.charAt(++at);
            switch (next) {
                case 'n' -> found.append('\n');
                case 't' -> found.append('\t');
                case 'r' -> found.append('\r');
                case 'b' -> found.append('\b');
                case 'f' -> found.append('\f');
                case 'u' -> {
                    found.append((char) Integer.parseInt(text.substring(at + 1, at + 5), 16));
                    at += 4;
                }
                default -> found.append(next);
            }
        }
        at++;
        return found.toString();
    }
}
