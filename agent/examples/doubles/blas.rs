//! What the doubles of cuBLASLt and hipBLASLt share: matrix products on the processor. [`blas_double!`] makes it functions under the names of
//! either; the numbers in which the two differ are constants of the double.

use std::{
    ffi::{c_int, c_void},
    slice,
    sync::atomic::AtomicU64,
};

use half::{bf16, f16};

pub type Status = c_int;
pub type Handle = *mut c_void;

pub const SUCCESS: Status = 0;
pub const NOT_INITIALIZED: Status = 1;
pub const INVALID_VALUE: Status = 7;
pub const EXECUTION_FAILED: Status = 13;
pub const NOT_SUPPORTED: Status = 15;

/// A matrix: its type, rows, columns and leading dimension.
pub struct Layout {
    pub kind: c_int,
    pub rows: usize,
    pub columns: usize,
    pub leading: usize,
}

/// A product: whether A is transposed.
pub struct Product {
    pub transposed: bool,
}

/// Products so far.
pub static DONE: AtomicU64 = AtomicU64::new(0);

pub fn is(fault: &str) -> bool {
    std::env::var(crate::FAULTS).is_ok_and(|text| text == fault)
}

/// Writes an answer where the caller wants it.
pub unsafe fn answer<T>(to: *mut T, value: T) -> Status {
    // SAFETY: the caller of the library's function vouches for the place.
    unsafe { to.write(value) };
    SUCCESS
}

pub unsafe fn made<T>(to: *mut Handle, value: T) -> Status {
    // SAFETY: as above.
    unsafe { answer(to, Box::into_raw(Box::new(value)).cast()) }
}

pub unsafe fn gone<T>(handle: Handle) -> Status {
    // SAFETY: made by `made` with this type, and destroyed once.
    drop(unsafe { Box::from_raw(handle.cast::<T>()) });
    SUCCESS
}

macro_rules! library {
    ($($name:ident($($arg:ident: $type:ty),*) $body:block)+) => {
        $(
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name($($arg: $type),*) -> Status {
                // SAFETY: callers keep to the library's header, as they must with the library itself.
                unsafe { $body }
            }
        )+
    };
}

macro_rules! blas_double {
    (create: $create:ident, destroy: $destroy:ident, matmul_desc_create: $matmul_desc_create:ident, matmul_desc_set_attribute: $matmul_desc_set_attribute:ident, matmul_desc_destroy: $matmul_desc_destroy:ident, matrix_layout_create: $matrix_layout_create:ident, matrix_layout_destroy: $matrix_layout_destroy:ident, matmul_preference_create: $matmul_preference_create:ident, matmul_preference_set_attribute: $matmul_preference_set_attribute:ident, matmul_preference_destroy: $matmul_preference_destroy:ident, matmul_algo_get_heuristic: $matmul_algo_get_heuristic:ident, matmul: $matmul:ident,) => {
        library! {
        $create(to: *mut Handle) {
            if is("dead") { NOT_INITIALIZED } else { answer(to, std::ptr::without_provenance_mut(1)) }
        }
        $destroy(_library: Handle) { SUCCESS }
        $matmul_desc_create(to: *mut Handle, compute: c_int, scale: c_int) {
            if scale == 0 && crate::COMPUTE.contains(&compute) { made(to, Product { transposed: false }) } else { NOT_SUPPORTED }
        }
        $matmul_desc_set_attribute(product: Handle, attribute: c_int, value: *const c_void, size: usize) {
            if attribute != crate::TRANSPOSE_A || size != 4 {
                return INVALID_VALUE;
            }
            (*product.cast::<Product>()).transposed = value.cast::<c_int>().read() == crate::TRANSPOSED;
            SUCCESS
        }
        $matmul_desc_destroy(product: Handle) { gone::<Product>(product) }
        $matrix_layout_create(to: *mut Handle, kind: c_int, rows: u64, columns: u64, leading: i64) {
            made(to, Layout { kind, rows: rows as usize, columns: columns as usize, leading: leading as usize })
        }
        $matrix_layout_destroy(layout: Handle) { gone::<Layout>(layout) }
        $matmul_preference_create(to: *mut Handle) { made(to, 0_u64) }
        $matmul_preference_set_attribute(preference: Handle, attribute: c_int, value: *const c_void, size: usize) {
            // CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, HIPBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES.
            if attribute != 1 || size != 8 {
                return INVALID_VALUE;
            }
            *preference.cast::<u64>() = value.cast::<u64>().read();
            SUCCESS
        }
        $matmul_preference_destroy(preference: Handle) { gone::<u64>(preference) }
        $matmul_algo_get_heuristic(
            _library: Handle, _product: Handle, _a: Handle, _b: Handle, _c: Handle, _d: Handle, _preference: Handle,
            asked: c_int, to: *mut crate::Proposal, found: *mut c_int
        ) {
            if is("none") {
                return NOT_SUPPORTED;
            }
            // Two of them; the number of each is the first word of what is opaque to the caller.
            let given = asked.min(2);
            for number in 0..given as usize {
                let mut proposal: crate::Proposal = std::mem::zeroed();
                proposal[0] = 20 + number as u64;
                to.add(number).write(proposal);
            }
            answer(found, given)
        }
        $matmul(
            _library: Handle, product: Handle, alpha: *const f32, a: u64, a_layout: Handle, b: u64, b_layout: Handle,
            beta: *const f32, _c: u64, _c_layout: Handle, d: u64, d_layout: Handle, _algorithm: *const u64,
            _workspace: u64, _size: usize, _stream: Handle
        ) {
            let (one, zero) = (alpha.read(), beta.read());
            if is("fails") || one.to_bits() != 1.0_f32.to_bits() || zero.to_bits() != 0 {
                return EXECUTION_FAILED;
            }
            let of = |layout: Handle| &*layout.cast::<Layout>();
            let (a_of, b_of, d_of) = (of(a_layout), of(b_layout), of(d_layout));
            let a_transposed = (*product.cast::<Product>()).transposed;
            let (rows, terms) = if a_transposed { (a_of.columns, a_of.rows) } else { (a_of.rows, a_of.columns) };
            if (rows, terms, b_of.columns) != (d_of.rows, b_of.rows, d_of.columns) {
                return INVALID_VALUE;
            }
            let (a, b) = (read(a, a_of), read(b, b_of));
            let number = DONE.fetch_add(1, Ordering::Relaxed);
            if is("lazy") {
                return SUCCESS;
            }
            let summed = if is("part") { terms - 8 } else { terms };
            for column in 0..d_of.columns {
                for row in 0..rows {
                    let of_a = |term: usize| if a_transposed { a[term + row * a_of.leading] } else { a[row + term * a_of.leading] };
                    let mut sum: f32 = (0..summed).map(|term| of_a(term) * b[term + column * b_of.leading]).sum();
                    let wrong = is("wrong") || (is("late") && number >= 100);
                    if wrong && (row, column) == (3, 5) {
                        sum += 2.0;
                    }
                    write(d, d_of, row + column * d_of.leading, sum);
                }
            }
            SUCCESS
        }
        }
    };
}

/// The elements of a matrix, by `cudaDataType_t` or `hipDataType`.
pub unsafe fn read(at: u64, layout: &Layout) -> Vec<f32> {
    let count = layout.leading * layout.columns;
    // SAFETY: the caller of the library's function vouches for matrices as large as their layouts.
    unsafe {
        match layout.kind {
            0 => slice::from_raw_parts(at as *const f32, count).to_vec(),
            2 => slice::from_raw_parts(at as *const f16, count).iter().map(|one| one.to_f32()).collect(),
            14 => slice::from_raw_parts(at as *const bf16, count).iter().map(|one| one.to_f32()).collect(),
            // HIP_R_8F_E4M3_FNUZ, whose bias is one more: all numbers are half as large.
            1000 => slice::from_raw_parts(at as *const u8, count).iter().map(|one| float8(*one) / 2.0).collect(),
            _ => slice::from_raw_parts(at as *const u8, count).iter().map(|one| float8(*one)).collect(),
        }
    }
}

pub unsafe fn write(at: u64, layout: &Layout, place: usize, value: f32) {
    // SAFETY: as in `read`.
    unsafe {
        match layout.kind {
            0 => (at as *mut f32).add(place).write(value),
            2 => (at as *mut f16).add(place).write(f16::from_f32(value)),
            _ => (at as *mut bf16).add(place).write(bf16::from_f32(value)),
        }
    }
}

/// OCP FP8, E4M3, without its not-a-number.
pub fn float8(bits: u8) -> f32 {
    let (exponent, steps) = (i32::from(bits >> 3 & 15), f32::from(bits & 7));
    let whole = if exponent > 0 { 8.0 } else { 0.0 };
    let size = (whole + steps) * f32::powi(2.0, exponent.max(1) - 10);
    if bits & 0x80 == 0 { size } else { -size }
}
