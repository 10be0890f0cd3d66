//! Conversion of structures between Rust and Python, without text in between.
//!
//! A structure becomes a dict with its fields in order, a list becomes a list, and `None` is None. The stub
//! (`_core.pyi`) lists the keys of each dict. A float that is not finite becomes None.

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyMapping, PySequence, PyString};
use serde::de::DeserializeOwned;
use serde::ser::{self, Serialize, Serializer};
use serde_json::{Map, Number, Value};

/// Error of a conversion: why a value could not be converted.
#[derive(Debug)]
pub(crate) struct Failed(String);

impl std::fmt::Display for Failed {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str(&self.0)
    }
}

impl std::error::Error for Failed {}

impl ser::Error for Failed {
    fn custom<T: std::fmt::Display>(message: T) -> Self {
        Self(message.to_string())
    }
}

impl From<PyErr> for Failed {
    fn from(error: PyErr) -> Self {
        Self(error.to_string())
    }
}

/// Converts a structure to Python values.
pub(crate) fn to_python<'py, T: Serialize + ?Sized>(py: Python<'py>, value: &T) -> Result<Bound<'py, PyAny>, Failed> {
    value.serialize(Maker { py })
}

/// Converts Python values to a structure; the error says what is wrong with them.
pub(crate) fn from_python<T: DeserializeOwned>(given: &Bound<'_, PyAny>) -> Result<T, Failed> {
    serde_json::from_value(value_of(given)?).map_err(|error| Failed(error.to_string()))
}

/// Converts Python values to a tree of JSON values.
fn value_of(given: &Bound<'_, PyAny>) -> Result<Value, Failed> {
    if given.is_none() {
        return Ok(Value::Null);
    }
    if let Ok(flag) = given.cast::<PyBool>() {
        return Ok(Value::Bool(flag.is_true()));
    }
    if given.is_instance_of::<PyInt>() {
        let whole = given.extract::<u64>().map(Number::from).or_else(|_| given.extract::<i64>().map(Number::from));
        return whole.map(Value::Number).map_err(|_| Failed(format!("{given} is too large a number")));
    }
    if given.is_instance_of::<PyFloat>() {
        let number = given.extract::<f64>()?;
        return Number::from_f64(number).map(Value::Number).ok_or_else(|| Failed(format!("{number} is no number")));
    }
    if let Ok(text) = given.cast::<PyString>() {
        return Ok(Value::String(text.to_str()?.to_owned()));
    }
    if let Ok(mapping) = given.cast::<PyMapping>() {
        let pairs = mapping.items()?.iter().map(|pair| {
            let (key, value) = pair.extract::<(String, Bound<'_, PyAny>)>()?;
            Ok((key, value_of(&value)?))
        });
        return Ok(Value::Object(pairs.collect::<Result<Map<_, _>, Failed>>()?));
    }
    let items = given.cast::<PySequence>().map_err(|_| Failed(format!("cannot take {}", given.get_type())))?;
    let items = items.try_iter()?.map(|item| value_of(&item?));
    Ok(Value::Array(items.collect::<Result<_, Failed>>()?))
}

/// Serializer that creates Python values.
#[derive(Clone, Copy)]
struct Maker<'py> {
    py: Python<'py>,
}

type Made<'py> = Result<Bound<'py, PyAny>, Failed>;

impl<'py> Maker<'py> {
    fn items(self) -> Items<'py> {
        Items { maker: self, list: PyList::empty(self.py), variant: None }
    }

    fn fields(self) -> Fields<'py> {
        Fields { maker: self, dict: PyDict::new(self.py), key: None, variant: None }
    }

    /// Returns `{variant: content}`, serde's form of a variant with content; without a variant, the content.
    fn tagged(self, variant: Option<&str>, content: Bound<'py, PyAny>) -> Made<'py> {
        let Some(variant) = variant else { return Ok(content) };
        let dict = PyDict::new(self.py);
        dict.set_item(variant, content)?;
        Ok(dict.into_any())
    }
}

macro_rules! plain {
    ($($name:ident: $type:ty),+) => {
        $(fn $name(self, value: $type) -> Made<'py> {
            Ok(value.into_pyobject(self.py).map_err(PyErr::from)?.to_owned().into_any())
        })+
    };
}

impl<'py> Serializer for Maker<'py> {
    type Ok = Bound<'py, PyAny>;
    type Error = Failed;
    type SerializeSeq = Items<'py>;
    type SerializeTuple = Items<'py>;
    type SerializeTupleStruct = Items<'py>;
    type SerializeTupleVariant = Items<'py>;
    type SerializeMap = Fields<'py>;
    type SerializeStruct = Fields<'py>;
    type SerializeStructVariant = Fields<'py>;

    plain!(
        serialize_bool: bool, serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64,
        serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64, serialize_str: &str
    );

    fn serialize_f32(self, value: f32) -> Made<'py> {
        self.serialize_f64(value.into())
    }

    fn serialize_f64(self, value: f64) -> Made<'py> {
        if value.is_finite() { Ok(PyFloat::new(self.py, value).into_any()) } else { self.serialize_none() }
    }

    fn serialize_char(self, value: char) -> Made<'py> {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_bytes(self, value: &[u8]) -> Made<'py> {
        Ok(PyBytes::new(self.py, value).into_any())
    }

    fn serialize_none(self) -> Made<'py> {
        Ok(self.py.None().into_bound(self.py))
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Made<'py> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Made<'py> {
        self.serialize_none()
    }

    fn serialize_unit_struct(self, _: &'static str) -> Made<'py> {
        self.serialize_none()
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Made<'py> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Made<'py> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Made<'py> {
        self.tagged(Some(variant), value.serialize(self)?)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Items<'py>, Failed> {
        Ok(self.items())
    }

    fn serialize_tuple(self, _: usize) -> Result<Items<'py>, Failed> {
        Ok(self.items())
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Items<'py>, Failed> {
        Ok(self.items())
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Items<'py>, Failed> {
        Ok(Items { variant: Some(variant), ..self.items() })
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Fields<'py>, Failed> {
        Ok(self.fields())
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Fields<'py>, Failed> {
        Ok(self.fields())
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Fields<'py>, Failed> {
        Ok(Fields { variant: Some(variant), ..self.fields() })
    }
}

/// List that is being built.
struct Items<'py> {
    maker: Maker<'py>,
    list: Bound<'py, PyList>,
    variant: Option<&'static str>,
}

impl<'py> Items<'py> {
    fn add<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Failed> {
        Ok(self.list.append(value.serialize(self.maker)?)?)
    }

    fn made(self) -> Made<'py> {
        self.maker.tagged(self.variant, self.list.into_any())
    }
}

/// Dict that is being built.
struct Fields<'py> {
    maker: Maker<'py>,
    dict: Bound<'py, PyDict>,
    key: Option<Bound<'py, PyAny>>,
    variant: Option<&'static str>,
}

impl<'py> Fields<'py> {
    fn add<T: Serialize + ?Sized>(&mut self, key: &str, value: &T) -> Result<(), Failed> {
        Ok(self.dict.set_item(key, value.serialize(self.maker)?)?)
    }

    fn made(self) -> Made<'py> {
        self.maker.tagged(self.variant, self.dict.into_any())
    }
}

macro_rules! list_of {
    ($($trait:ident.$add:ident),+) => {
        $(impl<'py> ser::$trait for Items<'py> {
            type Ok = Bound<'py, PyAny>;
            type Error = Failed;

            fn $add<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Failed> {
                self.add(value)
            }

            fn end(self) -> Made<'py> {
                self.made()
            }
        })+
    };
}
list_of!(
    SerializeSeq.serialize_element,
    SerializeTuple.serialize_element,
    SerializeTupleStruct.serialize_field,
    SerializeTupleVariant.serialize_field
);

macro_rules! dict_of {
    ($($trait:ident),+) => {
        $(impl<'py> ser::$trait for Fields<'py> {
            type Ok = Bound<'py, PyAny>;
            type Error = Failed;

            fn serialize_field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result<(), Failed> {
                self.add(key, value)
            }

            fn end(self) -> Made<'py> {
                self.made()
            }
        })+
    };
}
dict_of!(SerializeStruct, SerializeStructVariant);

impl<'py> ser::SerializeMap for Fields<'py> {
    type Ok = Bound<'py, PyAny>;
    type Error = Failed;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Failed> {
        self.key = Some(key.serialize(self.maker)?);
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Failed> {
        let key = self.key.take().ok_or_else(|| Failed("a value without a key".into()))?;
        Ok(self.dict.set_item(key, value.serialize(self.maker)?)?)
    }

    fn end(self) -> Made<'py> {
        self.made()
    }
}
